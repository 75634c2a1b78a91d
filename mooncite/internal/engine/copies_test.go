package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"localmcp/mooncite/internal/engine"
)

// claudeRecord is one record with fields of its own.
func claudeRecord(id string, second int, text string, more obj) obj {
	rec := obj{"type": "user", "uuid": id, "cwd": "/w/app", "timestamp": at(second), "message": obj{"role": "user", "content": text}}
	for k, v := range more {
		rec[k] = v
	}
	return rec
}

// Decision 2.5: a turn copied by a fork, a resume or double writing is one candidate.
func TestCopiesFold(t *testing.T) {
	text := "the amber lantern is in the harbor"
	for name, write := range map[string]func(w *world){
		"claude fork with the same uuid": func(w *world) {
			w.Write(t, claudeDir+"a.jsonl", lines(claudeRecord("u1", 1, text, nil)))
			w.Write(t, claudeDir+"b.jsonl", lines(claudeRecord("u1", 1, text, nil), claudeRecord("u2", 5, "more", nil)))
		},
		"claude fork with forkedFrom and new ids": func(w *world) {
			w.Write(t, claudeDir+"a.jsonl", lines(claudeRecord("u1", 1, text, nil)))
			w.Write(t, claudeDir+"b.jsonl", lines(claudeRecord("x1", 9, text, obj{"forkedFrom": obj{"sessionId": "a", "messageUuid": "u1"}})))
		},
		"resume with the same time": func(w *world) {
			w.Write(t, claudeDir+"a.jsonl", lines(claudeRecord("u1", 1, text, nil)))
			w.Write(t, claudeDir+"b.jsonl", lines(claudeRecord("x1", 1, text, nil)))
		},
		"codex fork": func(w *world) {
			w.Write(t, codexDir+"rollout-a.jsonl", header("codex", "a")+turns("codex", "", 0, say{"user", text}))
			w.Write(t, codexDir+"rollout-b.jsonl", lines(obj{"timestamp": at(9), "type": "session_meta", "payload": obj{"id": "b", "forked_from_id": "a", "cwd": "/w/app"}})+
				header("codex", "a")+turns("codex", "", 9, say{"user", text}))
		},
		"codex archive": func(w *world) {
			all := header("codex", "a") + turns("codex", "", 0, say{"user", text})
			w.Write(t, codexDir+"rollout-a.jsonl", all)
			w.Write(t, ".codex/archived_sessions/rollout-a.jsonl", all)
		},
		"pi fork": func(w *world) {
			w.session("pi", "a", say{"user", text})
			w.Write(t, place("pi", "b"), lines(obj{"type": "session", "version": 3, "id": "b", "timestamp": at(9), "cwd": "/w/app", "parentSession": "a"})+turns("pi", "a-", 0, say{"user", text}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			write(w)
			out := w.recall("amber lantern harbor")
			if len(out.Candidates) != 1 || out.Candidates[0].Copies != 1 {
				t.Fatalf("%s", out.Text())
			}
			c := out.Candidates[0]
			if name != "codex archive" && !strings.HasSuffix(c.SessionID, ":a") {
				t.Errorf("not the original: %s", c.SessionID)
			}
			w.verified(c.EvidenceID)
			// Every copy keeps an identity of its own.
			if !strings.HasPrefix(name, "codex") {
				own := w.ask(engine.RecallIn{Query: "amber lantern harbor", SessionID: "b"})
				if len(own.Candidates) != 1 || own.Candidates[0].EvidenceID == c.EvidenceID {
					t.Fatalf("%s", own.Text())
				}
				w.verified(own.Candidates[0].EvidenceID)
			}
		})
	}
}

// Codex writes each turn two or three times: it is one span, cited by its event.
func TestCodexDoubleWriting(t *testing.T) {
	w := newWorld(t)
	w.Write(t, codexDir+"rollout-a.jsonl", header("codex", "a")+lines(
		obj{"timestamp": at(1), "type": "response_item", "payload": obj{"type": "message", "role": "user", "content": []any{obj{"type": "input_text", "text": "the amber lantern"}}}},
		obj{"timestamp": at(1), "type": "event_msg", "payload": obj{"type": "user_message", "message": "the amber lantern"}},
		obj{"timestamp": at(2), "type": "event_msg", "payload": obj{"type": "agent_message", "message": "a quince answer"}},
		obj{"timestamp": at(2), "type": "response_item", "payload": obj{"type": "message", "role": "assistant", "content": []any{obj{"type": "output_text", "text": "a quince answer"}}}},
		obj{"timestamp": at(3), "type": "event_msg", "payload": obj{"type": "task_complete", "last_agent_message": "a quince answer"}},
	))
	for _, query := range []string{"amber lantern", "quince answer"} {
		out := w.recall(query)
		if len(out.Candidates) != 1 || out.Candidates[0].Copies != 0 || !strings.HasSuffix(out.Candidates[0].SourceKind, "_message") || out.Scope.EvidenceSpans != 2 {
			t.Errorf("%s", out.Text())
		}
	}
}

// The same text twice in a session is one candidate with its count; truly different
// turns of several sessions stay apart, and so do different speakers.
func TestSameTextIsNotAlwaysACopy(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "a", say{"user", "yes marzipan"}, say{"assistant", "ok"}, say{"user", "yes marzipan"}, say{"assistant", "yes marzipan"})
	w.Write(t, place("claude-code", "b"), turns("claude-code", "b", 20, say{"user", "yes marzipan"}))
	out := w.recall("yes marzipan")
	if len(out.Candidates) != 3 {
		t.Fatalf("%s", out.Text())
	}
	var twice int
	for _, c := range out.Candidates {
		if c.DuplicateSpanCount == 2 {
			twice++
		}
		if c.Copies != 0 || c.DuplicateSpanCount == 1 {
			t.Errorf("%+v", c)
		}
	}
	if twice != 1 {
		t.Errorf("%s", out.Text())
	}
}

// Many copies of one turn use up no place of other turns.
func TestManyCopies(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		w.Write(t, place("claude-code", fmt.Sprint("fork", i)), lines(claudeRecord("u1", 1, "the amber lantern", nil)))
	}
	w.session("claude-code", "other", say{"user", "an amber and a lantern of another kind, said in more words"})
	w.touch(place("claude-code", "other"), w.past())
	out := w.recall("amber lantern")
	if len(out.Candidates) != 2 || out.Candidates[0].Copies != 59 || out.Candidates[1].Copies != 0 {
		t.Fatalf("%d candidates: %s", len(out.Candidates), out.Text())
	}
}

// Boilerplate that every session begins with is folded, and comes last.
func TestBoilerplateFolds(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.Write(t, place("codex", fmt.Sprint("s", i)), lines(obj{"timestamp": at(i), "type": "session_meta", "payload": obj{"id": fmt.Sprint("s", i), "cwd": "/w/app", "instructions": "Always mind the amber lantern."}})+
			turns("codex", "", i, say{"user", fmt.Sprintf("turn %d", i)}))
	}
	w.session("claude-code", "c", say{"user", "mind the lantern, the amber one"})
	out := w.recall("amber lantern")
	if len(out.Candidates) != 2 || out.Candidates[0].SourceOrigin != "claude-code" || out.Candidates[1].Copies != 7 {
		t.Fatalf("%s", out.Text())
	}
}

// Mooncite's own answers, stored by clients, are no evidence; text that only speaks of
// them is.
func TestEchoes(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "the amber lantern decision"})
	rendered := w.recall("amber lantern")
	inspected := w.verified(rendered.Candidates[0].EvidenceID)
	missed := w.ask(engine.RecallIn{Query: "lantern amber", SourceOrigin: "omp"})
	n := 0
	store := func(text string) {
		for _, who := range []string{"tool", "assistant"} {
			n++
			w.session("claude-code", fmt.Sprint("echo", n), say{who, text})
		}
	}
	structured := func(v any) string { return strings.TrimSuffix(lines(v), "\n") }
	store(rendered.Text())
	store(inspected.Text())
	store(structured(rendered))
	store(structured(inspected))
	store(structured([]any{obj{"type": "text", "text": rendered.Text()}}))
	store("Wall time: 0.1 seconds\nOutput:\n" + structured([]any{obj{"type": "text", "text": rendered.Text()}}))
	store(sorted(t, rendered))
	store(sorted(t, inspected))
	store(structured(missed))
	store(sorted(t, missed))
	store(missed.Text())
	store("Evidence for “amber lantern”: [full_verified; complete coverage] the amber lantern decision")
	store("Verified evidence mooncite:pi:00:11:22:0:\nthe amber lantern decision")
	out := w.ask(engine.RecallIn{Query: "amber lantern", Limit: 20})
	if len(out.Candidates) != 1 || out.Candidates[0].IsEcho || out.Candidates[0].EvidenceID != rendered.Candidates[0].EvidenceID {
		for _, c := range out.Candidates {
			t.Errorf("not an echo: %.200q", c.Excerpt)
		}
	}
	if out.EchoesSuppressed != n {
		t.Errorf("%d of %d suppressed", out.EchoesSuppressed, n)
	}
	if !strings.Contains(strings.Join(out.Warnings, "\n"), fmt.Sprint(out.EchoesSuppressed, " ")) {
		t.Errorf("%q", out.Warnings)
	}
}

// An echo can be fetched by its exact id.
func TestEchoByID(t *testing.T) {
	w := newWorld(t)
	w.session("pi", "s1", say{"user", "alpha"}, say{"tool", "Mooncite recall: no_match; conclusive=true; No text matches.\nQuery: marzipan"})
	out := w.recall("marzipan")
	if len(out.Candidates) != 0 || out.EchoesSuppressed != 1 || out.Outcome != engine.NoMatch {
		t.Fatalf("%s", out.Text())
	}
	got := w.verified(w.one("alpha").EvidenceID)
	echo := got.Window[len(got.Window)-1].EvidenceID
	if c := w.one(echo); !c.IsEcho || c.EvidenceID != echo {
		t.Errorf("%+v", c)
	}
}

// A person who quotes or speaks of Mooncite is heard.
func TestNoEchoes(t *testing.T) {
	w := newWorld(t)
	texts := []string{
		"Mooncite recall: the walrus tool was too slow",
		"I asked and it said \"Mooncite recall: no_match\" about the walrus",
		"Why does mooncite_recall not find the walrus?",
		"The walrus heading is `Mooncite status: ready`, is it not?",
		`{"walrus": true, "tool": "mooncite_recall"}`,
	}
	for i, text := range texts {
		w.session("claude-code", fmt.Sprint("s", i), say{"user", text})
	}
	out := w.ask(engine.RecallIn{Query: "walrus", Limit: 20})
	if len(out.Candidates) != len(texts) || out.EchoesSuppressed != 0 {
		t.Errorf("%d of %d, %d suppressed: %q", len(out.Candidates), len(texts), out.EchoesSuppressed, excerpts(out))
	}
}

// Echoes use up no place of the text they repeat.
func TestManyEchoes(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "the amber lantern decision"})
	w.touch(place("claude-code", "s1"), w.past())
	w.one("amber")
	for i := range 80 {
		w.session("claude-code", fmt.Sprint("echo", i), say{"tool", fmt.Sprintf("Mooncite recall: matches; conclusive=true; Found.\nQuery: amber lantern\nFinding 1\n    the amber lantern decision %d", i)})
	}
	for _, order := range []string{"", "newest", "oldest"} {
		for _, query := range []string{"amber lantern", `"amber lantern"`} {
			out := w.ask(engine.RecallIn{Query: query, Order: order})
			if len(out.Candidates) != 1 || out.Candidates[0].Excerpt != "the amber lantern decision" || out.EchoesSuppressed < 18 {
				t.Errorf("%s %s: %d candidates, %d suppressed", query, order, len(out.Candidates), out.EchoesSuppressed)
			}
		}
	}
}
