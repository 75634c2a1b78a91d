package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
)

// inconclusive recalls and wants that absence is not claimed, for a reason that has
// these words in it.
func (w *world) inconclusive(in engine.RecallIn, reason string) {
	w.t.Helper()
	out := w.ask(in)
	if out.Outcome != engine.Inconclusive || out.Conclusive || out.Next == nil || !strings.Contains(strings.Join(out.Warnings, "\n"), reason) {
		w.t.Errorf("%+v: %s", in, out.Text())
	}
}

// A damaged line spoils only answers that it could change.
func TestDamagedLine(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := place(o, "s1")
			w.Write(t, rel, header(o, "s1")+turns(o, "s1-", 0, say{"user", "alpha one"})+
				`{"type":"user","message":{"content":"marzipan in a damaged li`+"\n"+
				turns(o, "s1-", 1, say{"assistant", "beta two"}))
			w.absent("zeppelin")
			w.absent(`"alpha two"`)
			w.inconclusive(engine.RecallIn{Query: "marzipan"}, "damaged")
			w.inconclusive(engine.RecallIn{Query: `"marzipan in a damaged"`}, "damaged")
			// Nobody can tell whose, when and where it was said.
			w.inconclusive(engine.RecallIn{Query: "marzipan", Role: "user"}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "marzipan", After: at(0)}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "marzipan", Order: "newest"}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "marzipan", SourceOrigin: o}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "marzipan", Project: w.one("alpha").Project}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "marzipan zeppelin quince walrus lantern"}, "damaged")
			if out := w.ask(engine.RecallIn{Query: "marzipan", SourceOrigin: "chatgpt"}); out.Outcome != engine.NoMatch || !out.Conclusive {
				t.Errorf("another origin: %s", out.Text())
			}
			if out := w.recall("alpha"); !out.Conclusive {
				t.Errorf("a match that the line cannot change: %s", out.Text())
			}
			w.verified(w.one("beta").EvidenceID)
			st := w.status()
			if st.Outcome != engine.Ready || st.Malformed != 1 || st.Errors != 1 || len(st.ErrorGroups) != 1 || st.ErrorGroups[0].FatalCount != 0 || st.ErrorGroups[0].Origin != o {
				t.Errorf("%s", st.Text())
			}
			w.reopen()
			if again := w.status(); again.Malformed != 1 {
				t.Errorf("%s", again.Text())
			}
		})
	}
}

// Of one damaged line the first 256 KiB are searched. What stands behind is not called
// absent, and the rest of the history answers as ever.
func TestLongDamagedLine(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			filler := strings.Repeat("lantern oil ", 240<<10/12)
			line := `{"type":"user","message":{"content":"quince ` + filler + ` walrus` // less than 256 KiB
			w.Write(t, place(o, "s1"), header(o, "s1")+turns(o, "s1-", 0, say{"user", "alpha one"})+line+"\n")
			w.inconclusive(engine.RecallIn{Query: "quince"}, "damaged")
			w.inconclusive(engine.RecallIn{Query: "walrus"}, "damaged")
			w.absent("zeppelin")
			w.Write(t, place(o, "s2"), header(o, "s2")+turns(o, "s2-", 0, say{"user", "beta one"})+line+filler+" marzipan\n")
			w.inconclusive(engine.RecallIn{Query: "marzipan"}, "too long or too damaged to be searched")
			w.verified(w.one("alpha").EvidenceID)
			w.verified(w.one("beta").EvidenceID)
			if st := w.status(); st.Oversized != 1 || st.Malformed != 2 {
				t.Errorf("%s", st.Text())
			}
		})
	}
	t.Run("packed", func(t *testing.T) {
		w := newWorld(t)
		w.Write(t, codexDir+"rollout-a.jsonl.zst", packed(t, header("codex", "s1")+turns("codex", "s1-", 0, say{"user", "alpha one"})+
			`{"type":"event_msg","payload":{"message":"marzipan`+"\n"+turns("codex", "s1-", 1, say{"user", "beta two"})))
		w.verified(w.one("alpha").EvidenceID)
		w.verified(w.one("beta").EvidenceID)
		w.inconclusive(engine.RecallIn{Query: "marzipan"}, "too long or too damaged to be searched")
	})
}

// packed is a text as zstd packs it.
func packed(t testing.TB, text string) string {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return string(z.EncodeAll([]byte(text), nil))
}

// A whole record inside a spliced line is recovered with its own byte range.
func TestSplicedLine(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			stub := `{"type":"user","message":{"content":"quince stu`
			w.Write(t, place(o, "s1"), header(o, "s1")+turns(o, "s1-", 0, say{"user", "alpha one"})+stub+turns(o, "s1-", 1, say{"user", "marzipan two"})+turns(o, "s1-", 2, say{"user", "beta"}))
			got := w.verified(w.one("marzipan").EvidenceID)
			record := w.read(place(o, "s1"))[got.Locator.ByteStart:got.Locator.ByteEnd]
			if !strings.HasPrefix(record, "{") || !strings.HasSuffix(record, "}") || strings.Contains(record, "quince") || !strings.Contains(record, "marzipan") {
				t.Errorf("%q", record)
			}
			w.inconclusive(engine.RecallIn{Query: "quince"}, "damaged")
			w.one("beta")
		})
	}
}

// The middle of a long tool output can be found, not cited.
func TestLongToolOutput(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			fill := strings.Repeat("plain words of a build log\n", 1200)
			w.session(o, "s1", say{"user", "alpha"}, say{"tool", "headword " + fill + " marzipan amber lantern " + fill + " tailword"})
			for _, word := range []string{"headword", "tailword"} {
				c := w.one(word)
				if got := w.verified(c.EvidenceID); got.Target.OmittedBytes == 0 {
					t.Errorf("%s: nothing is omitted", word)
				}
			}
			w.inconclusive(engine.RecallIn{Query: "marzipan"}, "32 KiB")
			w.inconclusive(engine.RecallIn{Query: `"marzipan amber lantern"`}, "32 KiB")
			w.inconclusive(engine.RecallIn{Query: "marzipan", Order: "oldest"}, "32 KiB")
			w.absent(`"amber marzipan lantern"`)
			w.absent("zeppelin")
			role := w.one("headword").Role
			w.inconclusive(engine.RecallIn{Query: "marzipan", Role: role}, "32 KiB")
			if out := w.ask(engine.RecallIn{Query: "marzipan", Role: "user"}); out.Outcome != engine.NoMatch || !out.Conclusive {
				t.Errorf("what a tool said is not what the user said: %s", out.Text())
			}
			if st := w.status(); st.Outcome != engine.Ready || st.EvidenceSpans != 3 {
				t.Errorf("%s", st.Text())
			}
		})
	}
}

// A part of a tool's output that is too long even to be searched spoils conclusiveness.
func TestEndlessToolOutput(t *testing.T) {
	w := newWorld(t)
	fill := strings.Repeat("plain words of a build log\n", evidence.MaxHiddenBytes/26)
	w.session("claude-code", "s1", say{"user", "alpha"}, say{"tool", "headword " + fill + " marzipan " + fill})
	w.verified(w.one("headword").EvidenceID)
	w.inconclusive(engine.RecallIn{Query: "marzipan"}, "too long")
}

// A tool call with many arguments is searched whole; one with more than the bound says
// that it was not.
func TestManyToolArguments(t *testing.T) {
	arguments := func(n int) obj {
		var edits []any
		for i := range n {
			edits = append(edits, obj{"old": fmt.Sprintf("oldname%dqq", i), "new": fmt.Sprintf("newname%dqq", i)})
		}
		return obj{"edits": edits}
	}
	calls := map[string]func(any) obj{
		"claude-code": func(in any) obj {
			return obj{"type": "assistant", "uuid": "c1", "sessionId": "s", "timestamp": at(1), "message": obj{"role": "assistant",
				"content": []any{obj{"type": "tool_use", "id": "t", "name": "MultiEdit", "input": in}}}}
		},
		"codex": func(in any) obj {
			return obj{"timestamp": at(1), "type": "response_item", "payload": obj{"type": "function_call", "name": "edit", "call_id": "c",
				"arguments": strings.TrimSpace(lines(in))}}
		},
		"pi": func(in any) obj {
			return obj{"type": "message", "id": "p1", "parentId": nil, "timestamp": at(1), "message": obj{"role": "assistant",
				"content": []any{obj{"type": "toolCall", "id": "t", "name": "edit", "arguments": in}}}}
		},
	}
	for origin, call := range calls {
		t.Run(origin, func(t *testing.T) {
			w := newWorld(t)
			w.Write(t, place(origin, "s1"), header(origin, "s1")+lines(call(arguments(40))))
			w.verified(w.one("newname11qq").EvidenceID)
			w.verified(w.one("newname39qq").EvidenceID)
			w.absent("zeppelin")
			w = newWorld(t)
			w.Write(t, place(origin, "s1"), header(origin, "s1")+lines(call(arguments(evidence.MaxToolInputs))))
			w.one("newname39qq")
			w.inconclusive(engine.RecallIn{Query: fmt.Sprintf("newname%dqq", evidence.MaxToolInputs-1)}, "too long")
		})
	}
}

// A record too long to be read is named and spoils conclusiveness.
func TestOversizedRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 64 MiB")
	}
	w := newWorld(t)
	rel := place("claude-code", "s1")
	w.Write(t, rel, turns("claude-code", "a", 0, say{"user", "alpha"})+`{"type":"user","x":"`+strings.Repeat("x", evidence.MaxRecordBytes)+`"}`+"\n"+turns("claude-code", "a", 1, say{"user", "beta"}))
	w.verified(w.one("beta").EvidenceID)
	w.inconclusive(engine.RecallIn{Query: "zeppelin"}, "too long")
	if st := w.status(); st.Oversized != 1 || st.Errors != 0 || st.Outcome != engine.Degraded || !st.SearchUsable {
		t.Errorf("%s", st.Text())
	}
}

// Files nobody can read spoil answers they could change, and nothing else (decision
// 2.1).
func TestUnreadableFile(t *testing.T) {
	for name, c := range map[string]struct {
		origin, rel, text string
		reason            fault.Code
	}{
		"old codex": {"codex", codexDir + "rollout-old.jsonl", `{"nonsense":1}` + "\n", "source_read_or_parse_failure"},
		"name":      {"claude-code", ".claude/projects/-w-other/with\nnewline.jsonl", "{}\n", "source_read_or_parse_failure"},
		"no export": {"chatgpt", chatgptDir + "conversations.json", `"text"`, "source_read_or_parse_failure"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.session("claude-code", "s1", say{"user", "alpha one"})
			w.Write(t, c.rel, c.text)
			if out := w.recall("alpha"); out.Outcome != engine.Matches || out.Conclusive || out.Coverage != "partial" {
				t.Errorf("%s", out.Text())
			}
			w.inconclusive(engine.RecallIn{Query: "zeppelin"}, "mooncite_status")
			w.inconclusive(engine.RecallIn{Query: "zeppelin", SourceOrigin: c.origin}, "mooncite_status")
			if out := w.ask(engine.RecallIn{Query: "zeppelin", SourceOrigin: "omp"}); out.Outcome != engine.NoMatch || !out.Conclusive {
				t.Errorf("%s", out.Text())
			}
			st := w.status()
			if st.Outcome != engine.Degraded || len(st.Problems) != 1 || st.Problems[0].Origin != c.origin || st.Problems[0].Reason != c.reason || st.Problems[0].Detail == "" || st.Problems[0].Remedy == "" || len(st.Problems[0].ID) != 8 {
				t.Fatalf("%s", st.Text())
			}
			if strings.Contains(whole(t, st), w.Dir) {
				t.Error("a path is shown")
			}
			// It is mended.
			w.remove(c.rel)
			w.absent("zeppelin")
		})
	}
}

// A file without content is nothing to worry about.
func TestEmptyFile(t *testing.T) {
	for _, o := range jsonlOrigins {
		for name, text := range map[string]string{"empty": "", "unfinished": `{"type":"ses`, "blank": "\n\n"} {
			t.Run(o+"/"+name, func(t *testing.T) {
				w := newWorld(t)
				w.session("claude-code", "other", say{"user", "alpha"})
				w.Write(t, place(o, "s1"), text)
				w.one("alpha")
				w.absent("zeppelin")
				if st := w.status(); st.Outcome != engine.Ready {
					t.Errorf("%s", st.Text())
				}
				// It gets content.
				w.overwrite(place(o, "s1"), header(o, "s1")+turns(o, "s1-", 0, say{"user", "marzipan"}))
				w.verified(w.one("marzipan").EvidenceID)
			})
		}
	}
}

// Links, FIFOs and odd names in a root harm nothing.
func TestOddNames(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha"})
	if err := os.Symlink(w.Path(place("claude-code", "s1")), w.Path(place("claude-code", "link"))); err != nil {
		t.Fatal(err)
	}
	mkfifo(t, w.Path(place("claude-code", "fifo")))
	w.Write(t, piDir+"with\nnewline.jsonl", header("pi", "n")+turns("pi", "n", 0, say{"user", "marzipan"}))
	w.absent("zeppelin")
	c := w.one("marzipan")
	if strings.ContainsAny(c.EvidenceID, "\n ") {
		t.Errorf("%q", c.EvidenceID)
	}
	st := w.status()
	if st.Links != 1 || st.Outcome != engine.Ready {
		t.Errorf("%s", st.Text())
	}
	// A file that becomes a FIFO or a link is not opened.
	id := w.one("alpha").EvidenceID
	w.remove(place("claude-code", "s1"))
	mkfifo(t, w.Path(place("claude-code", "s1")))
	if got := w.inspect(id); got.Outcome != engine.Excluded || got.Target != nil || got.Next == nil {
		t.Errorf("%s", got.Text())
	}
	w.remove(place("claude-code", "s1"))
	if err := os.Symlink(w.Write(t, "elsewhere", "x"), w.Path(place("claude-code", "s1"))); err != nil {
		t.Fatal(err)
	}
	if got := w.inspect(id); got.Outcome != engine.Excluded || got.Target != nil {
		t.Errorf("%s", got.Text())
	}
}

// Decision 2.9: a root behind a link is named with its remedy; following the remedy
// mends it.
func TestLinkedRoot(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha"})
	w.Write(t, "real/sessions/2031/rollout-x.jsonl", header("codex", "x")+turns("codex", "x", 0, say{"user", "marzipan"}))
	if err := os.Symlink(w.Path("real"), w.Path(".codex")); err != nil {
		t.Fatal(err)
	}
	w.one("alpha")
	w.inconclusive(engine.RecallIn{Query: "marzipan"}, "link")
	st := w.status()
	if st.Outcome != engine.Degraded || len(st.Problems) == 0 || st.Problems[0].Reason != "source_root_unavailable" || !strings.Contains(st.Problems[0].Remedy, "source add") {
		t.Errorf("%s", st.Text())
	}
	if strings.Contains(whole(t, st), w.Dir) {
		t.Error("a path is shown")
	}
	if _, err := w.places().Register(t.Context(), registration(w, "codex", "real/sessions")); err != nil {
		t.Fatal(err)
	}
	w.verified(w.one("marzipan").EvidenceID)
}

// A bad sources.json takes nothing away but itself.
func TestBadConfiguration(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha"})
	w.Write(t, ".config/mooncite/sources.json", "{")
	w.one("alpha")
	w.inconclusive(engine.RecallIn{Query: "zeppelin"}, "sources.json")
	st := w.status()
	if st.Outcome != engine.Degraded || len(st.ErrorGroups) != 1 || st.ErrorGroups[0].Origin != "unknown" || st.ErrorGroups[0].Reason != "source_configuration_failure" || !st.SearchUsable {
		t.Errorf("%s", st.Text())
	}
	if again := w.status(); again.Errors != st.Errors {
		t.Error("the errors grow")
	}
}

// Unknown record types are counted, not errors.
func TestUnknownTypes(t *testing.T) {
	w := newWorld(t)
	w.Write(t, place("claude-code", "s1"), turns("claude-code", "a", 0, say{"user", "alpha"})+lines(obj{"type": "hologram", "uuid": "h1"}, obj{"type": "hologram", "uuid": "h2"}))
	w.absent("zeppelin")
	st := w.status()
	if st.Outcome != engine.Ready || st.Errors != 0 || len(st.UnknownTypes) != 1 || st.UnknownTypes[0] != (engine.UnknownType{Origin: "claude-code", Type: "hologram", Count: 2}) {
		t.Errorf("%s", st.Text())
	}
}

// The fields of status add up.
func TestStatusAddsUp(t *testing.T) {
	w := newWorld(t)
	for _, o := range jsonlOrigins {
		w.session(o, "s1", say{"user", "alpha " + o}, say{"assistant", "beta"})
	}
	w.Write(t, place("chatgpt", "x"), export(conversation("c1", say{"user", "alpha chatgpt"})))
	w.append(place("pi", "s1"), "not JSON\n"+turns("pi", "s1-", 1, say{"user", "a second record of one id"}))
	st := w.status()
	by := st.SourceFilesByOrigin
	if st.SourceFiles != 5 || by.Pi != 1 || by.OMP != 1 || by.Claude != 1 || by.Codex != 1 || by.ChatGPT != 1 {
		t.Errorf("%+v", by)
	}
	if st.EvidenceSpans != 9 || w.ask(engine.RecallIn{Query: "alpha"}).Scope.EvidenceSpans != 9 || st.Malformed != 1 || st.Errors != 2 || st.Skipped != 2 {
		t.Errorf("%s", st.Text())
	}
	var errors int64
	for _, g := range st.ErrorGroups {
		errors += g.Count
	}
	if errors != st.Errors || st.StateBytes == 0 || st.LastSuccessfulRefreshAt == nil || st.EligibleRecords > st.Records || st.Searched.Sources != 5 {
		t.Errorf("%s", st.Text())
	}
	if text := whole(t, st); strings.Contains(text, w.Dir) || strings.Contains(text, "alpha") {
		t.Error("status shows a path or text")
	}
	w.reopen()
	again := w.status()
	if again.Generation != st.Generation || again.Records != st.Records || again.Errors != st.Errors {
		t.Errorf("after reopening\n%s", again.Text())
	}
}
