package corpus

import (
	"strings"
	"time"
)

var claudeTools = []string{"Bash", "Read", "Grep", "Edit"}

// claude writes one Claude Code session: most of its bytes are tool traffic, and
// each tool result stands in the record twice, as the client writes it.
func (g *generator) claude(start time.Time, size int64) error {
	cwd, session := pick(g.r, g.words.projects), g.uuid()
	if err := g.open(".claude/projects/" + strings.ReplaceAll(cwd, "/", "-") + "/" + session + ".jsonl"); err != nil {
		return err
	}
	g.now = start
	o := &g.rec
	g.out.line(o.reset().raw(`{"type":"file-history-snapshot","messageId":`).str(g.uuid()).raw(`,"snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false}`))
	parent := ""
	turn := func(kind string) *record {
		id := g.uuid()
		claudeHead(o.reset(), parent, cwd, session, kind, id, g.now)
		parent = id
		return o.raw(`,"message":{`)
	}
	for g.out.bytes < size {
		g.step()
		g.out.line(turn("user").raw(`"role":"user","content":`).text(g.prose(between(g.r, 40, 500), " ")).raw(`}}`))
		for range between(g.r, 1, 7) {
			g.step()
			call := "toolu_" + g.hex(24)
			turn("assistant").raw(`"id":"msg_`).raw(g.hex(16)).raw(`","model":"m","role":"assistant","content":[{"type":"text","text":`).text(g.prose(between(g.r, 60, 700), " "))
			o.raw(`},{"type":"tool_use","id":`).str(call).raw(`,"name":`).str(pick(g.r, claudeTools)).raw(`,"input":{"command":`).str(g.command(160))
			o.raw(`}}],"usage":{"input_tokens":`).num(between(g.r, 1, 90000)).raw(`,"output_tokens":`).num(between(g.r, 1, 3000)).raw(`}},"requestId":"req_`).raw(g.hex(16)).raw(`"}`)
			g.out.line(o)
			g.step()
			body := g.dump(logNormal(g.r, 7.4, 1.1))
			turn("user").raw(`"role":"user","content":[{"tool_use_id":`).str(call).raw(`,"type":"tool_result","content":`).text(body)
			g.out.line(o.raw(`}]},"toolUseResult":{"stdout":`).text(body).raw(`,"stderr":"","interrupted":false}}`))
		}
		g.step()
		g.out.line(turn("assistant").raw(`"role":"assistant","content":[{"type":"text","text":`).text(g.prose(between(g.r, 300, 2600), "\n\n")).raw(`}]}}`))
	}
	return g.shut()
}

// claudeHead begins a conversation record with its envelope.
func claudeHead(o *record, parent, cwd, session, kind, id string, at time.Time) *record {
	o.raw(`{"parentUuid":`).ref(parent).raw(`,"isSidechain":false,"userType":"external","cwd":`).str(cwd).raw(`,"sessionId":`).str(session)
	return o.raw(`,"version":"2.0.14","gitBranch":"main","type":`).str(kind).raw(`,"uuid":`).str(id).raw(`,"timestamp":`).str(iso(at))
}
