package memory_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/memory"
)

const piFile = ".pi/agent/sessions/--srv-lantern--/2031-04-01T08-00-00-000Z_s1.jsonl"

func piRecord(id, parent, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2031-04-01T08:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":%q}]}}`+"\n", id, parent, text)
}

// state is how a memory stands: in a recall that hides nothing, and after its sources
// were read again.
func (w *world) state(m memory.WriteOut) (recalled, inspected, outcome string) {
	w.t.Helper()
	out := w.recall(fmt.Sprintf(`{"query":%q,"include_invalid":true}`, m.MemoryID))
	if len(out.Candidates) != 1 {
		w.t.Fatalf("%s", out.Text())
	}
	shown := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID))
	if out.Candidates[0].Quarantined != quarantined(out.Candidates[0].ProvenanceState) {
		w.t.Errorf("%s", out.Text())
	}
	visible := w.recall(fmt.Sprintf(`{"query":%q}`, m.MemoryID))
	if (len(visible.Candidates) == 0) != quarantined(shown.ProvenanceState) && shown.ProvenanceState != "unavailable" {
		w.t.Errorf("hidden %t, but its state is %s", len(visible.Candidates) == 0, shown.ProvenanceState)
	}
	if len(visible.Candidates) == 0 && !strings.Contains(strings.Join(visible.Warnings, " "), "1 quarantined") {
		w.t.Errorf("what is hidden is not counted: %q", visible.Warnings)
	}
	return out.Candidates[0].ProvenanceState, shown.ProvenanceState, shown.ProvenanceOutcome
}

func quarantined(state string) bool {
	switch state {
	case "deauthorized", "content_mismatch", "context_mismatch", "unavailable":
		return true
	}
	return false
}

// What happens to a history decides how a memory stands that rests on it.
func TestAnchorHealth(t *testing.T) {
	for name, c := range map[string]struct {
		said                         string
		change                       func(w *world)
		recalled, inspected, outcome string
	}{
		"nothing happened": {"trimmed to four", func(*world) {}, "indexed", "indexed", "verified"},
		"the session goes on": {"trimmed to four", func(w *world) {
			w.append(lantern, turn("/srv/lantern", 3, "user", "And the glass?"))
		}, "indexed", "indexed", "verified"},
		"a compaction follows": {"anchored in pi", func(w *world) {
			w.append(piFile, `{"type":"compaction","id":"c1","parentId":"a1","summary":"The lantern was spoken of.","firstKeptEntryId":"a1"}`+"\n"+piRecord("a2", "c1", "Go on."))
		}, "indexed", "indexed", "verified"},
		"the branch is left": {"anchored in pi", func(w *world) {
			w.append(piFile, piRecord("b1", "s0", "Another branch.")+piRecord("b2", "b1", "It goes on."))
		}, "indexed", "indexed", "verified"},
		"an export is made anew with more": {"tide table", func(w *world) {
			w.Write(w.t, export, conversation("hello", "The tide table is pinned in the galley.", "And where is the almanac?"))
		}, "indexed", "indexed", "verified"},
		"an export is made anew with another text": {"tide table", func(w *world) {
			w.Write(w.t, export, conversation("hello", "The tide table was thrown away."))
		}, "content_mismatch", "content_mismatch", "quarantined"},
		"the text is rewritten": {"trimmed to four", func(w *world) {
			w.replace(lantern, "four millimetres.\"", "nine millimetres.\"")
		}, "content_mismatch", "content_mismatch", "quarantined"},
		"the record is rewritten around the text": {"trimmed to four", func(w *world) {
			w.replace(lantern, `"parentUuid":null`, `"parentUuid":"6e02e3d0-14a0-4029-9aad-0000000000ff"`)
		}, "content_mismatch", "content_mismatch", "quarantined"},
		"the entry is taken out": {"trimmed to four", func(w *world) {
			w.Write(w.t, lantern, turn("/srv/lantern", 2, "assistant", "Noted: four millimetres, every Monday."))
		}, "unavailable", "unavailable", "quarantined"},
		"the file goes away": {"trimmed to four", func(w *world) {
			w.remove(lantern)
		}, "last_good", "unavailable", "unavailable"},
		"the file goes away and the index is made anew": {"trimmed to four", func(w *world) {
			w.remove(lantern)
			if _, err := w.engine.Rebuild(w.t.Context(), nil); err != nil {
				w.t.Fatal(err)
			}
		}, "unavailable", "unavailable", "quarantined"},
		"the whole root goes away": {"trimmed to four", func(w *world) {
			if err := os.Rename(w.Path(".claude/projects"), w.Path("away")); err != nil {
				w.t.Fatal(err)
			}
		}, "last_good", "unavailable", "unavailable"},
		"the root is withdrawn": {"trimmed to four", func(w *world) {
			w.Set("MOONCITE_AUTO_SOURCES", "0")
			w.restart()
		}, "deauthorized", "deauthorized", "quarantined"},
		"the span is forgotten": {"trimmed to four", func(w *world) { w.forget("", w.evidence("trimmed to four")) }, "deauthorized", "deauthorized", "quarantined"},
		"the span is forgotten and the index is made anew": {"trimmed to four", func(w *world) {
			w.forget("", w.evidence("trimmed to four"))
			if _, err := w.engine.Rebuild(w.t.Context(), nil); err != nil {
				w.t.Fatal(err)
			}
		}, "deauthorized", "deauthorized", "quarantined"},
		"the session is forgotten and the index is made anew": {"trimmed to four", func(w *world) {
			w.forget("ef070e01-e148-4182-8c76-e5995c050003", "")
			if _, err := w.engine.Rebuild(w.t.Context(), nil); err != nil {
				w.t.Fatal(err)
			}
		}, "deauthorized", "deauthorized", "quarantined"},
		"a Pi file is rewritten": {"anchored in pi", func(w *world) { // its projection stays, but its bytes do not
			w.replace(piFile, "anchored in pi", "ANCHORED in pi")
		}, "last_good", "content_mismatch", "quarantined"},
		"the directory is renamed": {"trimmed to four", func(w *world) { // another source: the citation names none any more
			w.Write(w.t, ".claude/projects/-srv-other/x.jsonl", turn("/srv/other", 9, "user", "Elsewhere."))
			if err := os.Rename(w.Path(lantern), w.Path(".claude/projects/-srv-other/ef070e01-e148-4182-8c76-e5995c050003.jsonl")); err != nil {
				w.t.Fatal(err)
			}
		}, "last_good", "unavailable", "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Write(t, piFile, `{"type":"session","version":3,"id":"s1","timestamp":"2031-04-01T08:00:00.000Z","cwd":"/srv/lantern"}`+"\n"+piRecord("s0", "s1", "Begin.")+piRecord("a1", "s0", "This is anchored in pi."))
			m := w.anchored("A memory of it.", c.said)
			c.change(w)
			recalled, inspected, outcome := w.state(m)
			if recalled != c.recalled || inspected != c.inspected || outcome != c.outcome {
				t.Errorf("recall says %s, inspect %s and %s; want %s, %s, %s", recalled, inspected, outcome, c.recalled, c.inspected, c.outcome)
			}
		})
	}
}

func (w *world) remove(rel string) {
	w.t.Helper()
	if err := os.Remove(w.Path(rel)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) forget(session, span string) {
	w.t.Helper()
	plan, err := w.engine.PlanForget(w.t.Context(), session, span)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.engine.Forget(w.t.Context(), plan); err != nil {
		w.t.Fatal(err)
	}
}

// The context of an anchor is where it stands: another project quarantines it.
func TestContextOfAnchor(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("A memory of it.", "every Monday")
	// Claude's project comes from the records before, too: this record stays byte for byte.
	w.replace(lantern, `"cwd":"/srv/lantern","timestamp":"2031-04-01T08:00:02Z"`, `"cwd":"/srv/boathouse","timestamp":"2031-04-01T08:00:02Z"`)
	if recalled, inspected, outcome := w.state(m); recalled != "content_mismatch" || inspected != "content_mismatch" || outcome != "quarantined" {
		t.Errorf("%s %s %s", recalled, inspected, outcome)
	}
	w = newWorld(t)
	without := strings.Replace(turn("/srv/lantern", 3, "user", "Polish the brass."), `"cwd":"/srv/lantern",`, "", 1)
	w.append(lantern, without)
	m = w.anchored("A memory of brass.", "Polish the brass")
	w.replace(lantern, `"cwd":"/srv/lantern","timestamp":"2031-04-01T08:00:02Z"`, `"cwd":"/srv/boathouse","timestamp":"2031-04-01T08:00:02Z"`)
	if recalled, inspected, outcome := w.state(m); recalled != "context_mismatch" || inspected != "context_mismatch" || outcome != "quarantined" {
		t.Errorf("%s %s %s", recalled, inspected, outcome)
	}
}

// An inspection remembers what it found wrong, and forgets it when all is right again.
func TestObservedInvalidity(t *testing.T) {
	w := newWorld(t)
	w.Write(t, piFile, `{"type":"session","version":3,"id":"s1","timestamp":"2031-04-01T08:00:00.000Z","cwd":"/srv/lantern"}`+"\n"+piRecord("a1", "s1", "This is anchored in pi."))
	m := w.anchored("A memory of it.", "anchored in pi")
	query := fmt.Sprintf(`{"query":%q}`, m.MemoryID)
	w.replace(piFile, "anchored in pi", "ANCHORED in pi")
	if out := w.recall(query); len(out.Candidates) != 1 || out.Candidates[0].ProvenanceState != "last_good" || !strings.Contains(strings.Join(out.Warnings, " "), "last_good") {
		t.Fatalf("before it was looked at: %s", out.Text())
	}
	w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID))
	if out := w.recall(query); out.Outcome != "no_match" {
		t.Errorf("after it was looked at: %s", out.Text())
	}
	w.restart()
	if out := w.recall(query); out.Outcome != "no_match" {
		t.Errorf("another process does not know: %s", out.Text())
	}
	w.replace(piFile, "ANCHORED in pi", "anchored in pi")
	if out := w.recall(query); out.Outcome != "no_match" {
		t.Errorf("it is cleared without an inspection: %s", out.Text())
	}
	if shown := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID)); shown.ProvenanceOutcome != "verified" {
		t.Errorf("%s", shown.Text())
	}
	if out := w.recall(query); len(out.Candidates) != 1 || out.Candidates[0].Quarantined {
		t.Errorf("after it was verified again: %s", out.Text())
	}
	// What was verified once and is gone now is not remembered as wrong.
	w.remove(piFile)
	w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID))
	if out := w.recall(query); len(out.Candidates) != 1 || out.Candidates[0].ProvenanceState != "last_good" {
		t.Errorf("a source that is gone quarantines: %s", out.Text())
	}
}

// Changed evidence quarantines the revision that rests on it, not what is derived from
// it; and what is quarantined is not shown as related either.
func TestQuarantineDoesNotSpread(t *testing.T) {
	w := newWorld(t)
	parent := w.anchored("Trim the wick to four.", "trimmed to four")
	child := w.write(fmt.Sprintf(`{"operation":"create","interpretation":"Keep a gauge at hand.","provenance":{"kind":"derived","parents":[%s]}}`, parentsOf("supports", parent)))
	w.replace(lantern, "four millimetres.\"", "nine millimetres.\"")
	out := w.recall(`{"query":"gauge","related_limit":8}`)
	if len(out.Candidates) != 1 || out.Candidates[0].MemoryID != child.MemoryID || out.Candidates[0].Quarantined || len(out.Candidates[0].Related) != 0 || strings.Contains(out.Text(), "Trim the wick") {
		t.Errorf("%s", out.Text())
	}
	out = w.recall(`{"query":"gauge","related_limit":8,"include_invalid":true}`)
	if r := out.Candidates[0].Related; len(r) != 1 || !r[0].Quarantined || r[0].ProvenanceState != "content_mismatch" || !strings.Contains(out.Text(), "Trim the wick") {
		t.Errorf("%s", out.Text())
	}
	// A new revision with evidence of its own is not quarantined; the old one still is.
	w.write(fmt.Sprintf(`{"operation":"revise","memory_id":%q,"expected_revision":1,"interpretation":"Trim the wick on Mondays.","provenance":{"kind":"verified","evidence_ids":[%q]}}`, parent.MemoryID, w.evidence("every Monday")))
	if out := w.recall(`{"query":"Mondays"}`); len(out.Candidates) != 1 || out.Candidates[0].ProvenanceState != "indexed" {
		t.Errorf("%s", out.Text())
	}
	if old := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q,"revision":1}`, parent.MemoryID)); old.ProvenanceState != "content_mismatch" {
		t.Errorf("%s", old.Text())
	}
}

// Evidence must stand in its source when it is written down.
func TestEvidenceMustBeVerified(t *testing.T) {
	w := newWorld(t)
	create := func(ids ...string) string {
		return `{"operation":"create","interpretation":"x","scope":{"kind":"global"},"provenance":{"kind":"verified","evidence_ids":["` + strings.Join(ids, `","`) + `"]}}`
	}
	id := w.evidence("trimmed to four")
	uri := must[memory.WriteOut](w, memory.ToolWrite, create(id)).EvidenceURIs[0]
	w.refused("invalid_argument", "twice", memory.ToolWrite, create(id, uri))
	if got := w.write(create(uri)); got.EvidenceIDs[0] != id {
		t.Errorf("%+v", got)
	}
	w.refused(evidence.CodeRefused, "cannot be verified now: unavailable", memory.ToolWrite, create("mooncite:pi:000000000000000000000000:000000000000000000000000:000000000000000000000000:0"))
	w.remove(lantern)
	w.refused(evidence.CodeRefused, "cannot be verified now: missing", memory.ToolWrite, create(id))
}

// Mooncite's own answers are no evidence, in whatever form a client stored them.
func TestOwnAnswersAreNoEvidence(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("Trim wicks when the kittiwake calls.", "trimmed to four")
	k := w.write(fmt.Sprintf(`{"operation":"propose_skill_candidate","sources":[{"memory_id":%q,"revision":1}],"artifact":{"name":"kittiwake","description":"b","instructions":"c"}}`, m.MemoryID))
	answers := map[string]interface{ Text() string }{
		"write": m, "propose": k, "recall": w.recall(`{"query":"kittiwake"}`), "no match": w.recall(`{"query":"zzyzx"}`), "inspect": w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID)),
		"delete": w.delete(deletion(m, 1, 1)), "status": w.store.Status(t.Context()),
	}
	n := 10
	for name, a := range answers {
		for _, text := range []string{a.Text(), encoded(t, a), sorted(t, a)} {
			n++
			w.append(lantern, turn("/srv/lantern", n, "user", "The marker grackle"+fmt.Sprint(n)+" follows.")+turn("/srv/lantern", n+100, "assistant", text))
			out, err := w.engine.Recall(t.Context(), engine.RecallIn{Query: "kittiwake derived_memory learned-memory zzyzx", Limit: 20})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range out.Candidates {
				t.Errorf("%s comes back as evidence: %.200s", name, c.Excerpt)
			}
		}
	}
	// One is asked for by its citation.
	id := ""
	out, err := w.engine.Inspect(t.Context(), engine.InspectIn{EvidenceID: w.evidence("grackle" + fmt.Sprint(n))})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range out.Window {
		if s.Relation == "after" {
			id = s.EvidenceID
		}
	}
	w.refused(evidence.CodeRefused, "mooncite's own answer", memory.ToolWrite, fmt.Sprintf(`{"operation":"create","interpretation":"x","provenance":{"kind":"verified","evidence_ids":[%q]}}`, id))
}

// Without an index nothing is called intact, and the answer says why.
func TestIndexCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("Trim wicks.", "trimmed to four")
	w.unanchored("Trim sails.")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(w.places().StateDir, "index-*.sqlite"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := os.WriteFile(names[0], []byte(strings.Repeat("broken", 3000)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	out := w.recall(`{"query":"trim"}`)
	if len(out.Candidates) != 1 || !strings.Contains(strings.Join(out.Warnings, " "), "evidence could not be looked up") {
		t.Errorf("%s", out.Text())
	}
	if out = w.recall(`{"query":"trim","include_invalid":true}`); len(out.Candidates) != 2 {
		t.Errorf("%s", out.Text())
	}
	shown := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID))
	if shown.ProvenanceState != "unavailable" || shown.ProvenanceOutcome == "verified" {
		t.Errorf("%s", shown.Text())
	}
}

// While the index is being made anew nothing is known of anchors: the answer says so, and
// nothing is remembered as wrong.
func TestWhileTheIndexIsMadeAnew(t *testing.T) {
	w := newWorld(t)
	m := w.anchored("Trim wicks.", "trimmed to four")
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(w.places().StateDir, "index-1.sqlite"))
	if err == nil {
		_, err = db.Exec("UPDATE facts SET value = '0' WHERE key = 'tokens_version'")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	held, err := privdir.TryLock(filepath.Join(w.places().StateDir, "writer.lock")) // so that it takes long
	if err != nil {
		t.Fatal(err)
	}
	w.wait = 20 * time.Millisecond
	w.start()
	out := w.recall(`{"query":"wick"}`)
	if warnings := strings.Join(out.Warnings, " "); out.Outcome != "no_match" || !strings.Contains(warnings, "being made anew") || !strings.Contains(warnings, "1 quarantined") {
		t.Errorf("%s", out.Text())
	}
	if shown := w.inspect(fmt.Sprintf(`{"kind":"revision","memory_id":%q}`, m.MemoryID)); shown.ProvenanceState != "unavailable" || shown.ProvenanceOutcome == "verified" {
		t.Errorf("%s", shown.Text())
	}
	if err := held.Unlock(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if out = w.recall(`{"query":"wick"}`); len(out.Candidates) == 1 && out.Candidates[0].ProvenanceState == "indexed" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s", out.Text())
		}
	}
}
