package corpus

import "time"

// codex writes one Codex rollout. Typed prompts and answers stand in it twice, as
// an event and as a response item.
func (g *generator) codex(start time.Time, size int64) error {
	cwd, session := pick(g.r, g.words.projects), g.uuid()
	if err := g.open(".codex/sessions/" + start.UTC().Format("2006/01/02") + "/rollout-" + fileTime(start) + "-" + session + ".jsonl"); err != nil {
		return err
	}
	g.now = start
	o := &g.rec
	put := func(kind string) *record { return codexHead(o.reset(), g.now, kind) }
	put("session_meta").raw(`{"id":`).str(session).raw(`,"timestamp":`).str(iso(start)).raw(`,"cwd":`).str(cwd)
	g.out.line(o.raw(`,"originator":"codex_cli_rs","cli_version":"0.46.0","instructions":`).text(g.filler(900, " ")).raw(`}}`))
	for g.out.bytes < size {
		g.step()
		said := g.prose(between(g.r, 40, 500), " ")
		g.out.line(put("turn_context").raw(`{"cwd":`).str(cwd).raw(`,"approval_policy":"on-request","model":"m"}}`))
		g.out.line(put("response_item").raw(`{"type":"message","role":"user","content":[{"type":"input_text","text":`).text(said).raw(`}]}}`))
		g.out.line(codexUser(put("event_msg"), said))
		for range between(g.r, 1, 6) {
			g.step()
			call := "call_" + g.hex(24)
			put("response_item").raw(`{"type":"reasoning","summary":[{"type":"summary_text","text":`).text(g.filler(120, " "))
			g.out.line(o.raw(`}],"encrypted_content":"`).raw(g.hex(256)).raw(`"}}`))
			g.inner.reset().raw(`{"command":["bash","-lc",`).str(g.command(140)).raw(`]}`)
			g.out.line(put("response_item").raw(`{"type":"function_call","name":"shell","arguments":`).text(g.inner.b).raw(`,"call_id":`).str(call).raw(`}}`))
			g.inner.reset().raw(`{"output":`).text(g.dump(logNormal(g.r, 7.3, 1.1))).raw(`,"metadata":{"exit_code":0}}`)
			g.out.line(put("response_item").raw(`{"type":"function_call_output","call_id":`).str(call).raw(`,"output":`).text(g.inner.b).raw(`}}`))
			g.out.line(put("event_msg").raw(`{"type":"token_count","info":{"total_token_usage":{"input_tokens":`).num(between(g.r, 1, 99999)).raw(`}}}}`))
		}
		g.step()
		said = g.prose(between(g.r, 200, 2200), "\n\n")
		g.out.line(put("event_msg").raw(`{"type":"agent_message","message":`).text(said).raw(`}}`))
		g.out.line(put("response_item").raw(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`).text(said).raw(`}]}}`))
	}
	return g.shut()
}

// codexHead begins a line with its envelope; the payload and one brace follow.
func codexHead(o *record, at time.Time, kind string) *record {
	return o.raw(`{"timestamp":`).str(iso(at)).raw(`,"type":`).str(kind).raw(`,"payload":`)
}

func codexUser(o *record, said []byte) *record {
	return o.raw(`{"type":"user_message","message":`).text(said).raw(`,"kind":"plain"}}`)
}
