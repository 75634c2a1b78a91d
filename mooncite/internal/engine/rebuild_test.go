package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
)

// A rebuilt index numbers its documents anew: nothing remembered of the old one may
// be taken for the new one.
func TestRebuildForgetsDocumentNumbers(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	one := w.session("claude-code", "s1", say{"user", "alpha one"}, say{"user", "beta two"})
	two := w.session("claude-code", "s2", say{"user", "gamma three"}, say{"user", "delta four"})
	w.touch(one, now.Add(-2*time.Hour))
	w.touch(two, now.Add(-time.Hour))
	id := w.one("gamma").EvidenceID
	other := w.open() // as another process: it does not hear of the rebuild
	outside, err := other.Recall(t.Context(), engine.RecallIn{Query: "gamma"})
	if err != nil || len(outside.Candidates) != 1 {
		t.Fatal(err, outside.Text())
	}
	// The files are read in another order now.
	w.touch(two, now.Add(-3*time.Hour))
	w.append(one, turns("claude-code", "s1-", 2, say{"user", "epsilon five"}))
	w.touch(one, now)
	st := w.rebuild()
	if st.Generation == outside.Generation {
		t.Error("two generations have one name")
	}
	for _, e := range []*engine.Engine{w.e(), other} {
		got, err := e.Inspect(t.Context(), engine.InspectIn{EvidenceID: id})
		if err != nil || got.Outcome != engine.Verified || got.EvidenceID != id || got.Target.Text != "gamma three" {
			t.Errorf("%v\n%s", err, got.Text())
		}
		if out, err := e.Recall(t.Context(), engine.RecallIn{Query: "gamma"}); err != nil || out.Generation != st.Generation {
			t.Errorf("generation %s, rebuilt %s", out.Generation, st.Generation)
		}
	}
}

// Two engines on one state directory see each other's publications.
func TestTwoEngines(t *testing.T) {
	w := newWorld(t)
	rel := w.session("omp", "s1", say{"user", "alpha one"})
	a, b := w.open(), w.open()
	ask := func(e *engine.Engine, query string) int {
		out, err := e.Recall(t.Context(), engine.RecallIn{Query: query})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Candidates)
	}
	for i, word := range []string{"beta", "gamma", "delta", "epsilon"} {
		if ask(a, "alpha") != 1 || ask(b, "alpha") != 1 {
			t.Fatal("alpha is not found")
		}
		w.append(rel, turns("omp", "s1-", i+1, say{"user", word}))
		first, second := a, b
		if i%2 == 1 {
			first, second = b, a
		}
		if ask(first, word) != 1 || ask(second, word) != 1 {
			t.Errorf("%s is not found", word)
		}
	}
}

// Identical histories give identical citations in every state directory, and history
// is never touched.
func TestFreshStateDirectoriesAgree(t *testing.T) {
	w := newWorld(t)
	for _, o := range jsonlOrigins {
		w.session(o, "s1", say{"user", "alpha " + o}, say{"assistant", "beta"}, say{"tool", "gamma out"})
	}
	w.Write(t, place("chatgpt", "x"), export(conversation("c1", say{"user", "alpha chatgpt"})))
	before := testenv.Fingerprint(t, w.Path(".claude")) + testenv.Fingerprint(t, w.Path(".pi")) + testenv.Fingerprint(t, w.Path("incoming"))
	first := ids(w.ask(engine.RecallIn{Query: "alpha", Limit: 20, Order: "oldest"}))
	w.reopen()
	w.Set("MOONCITE_STATE_DIR", w.Path("another-state"))
	second := ids(w.ask(engine.RecallIn{Query: "alpha", Limit: 20, Order: "oldest"}))
	if len(first) != 5 || strings.Join(first, " ") != strings.Join(second, " ") {
		t.Errorf("%v\n%v", first, second)
	}
	if after := testenv.Fingerprint(t, w.Path(".claude")) + testenv.Fingerprint(t, w.Path(".pi")) + testenv.Fingerprint(t, w.Path("incoming")); after != before {
		t.Error("a history was touched")
	}
}

// inState reports which files of the state directory hold a text.
func (w *world) inState(text string) []string {
	w.t.Helper()
	var found []string
	dir := w.places().StateDir
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, en := range entries {
		data, err := os.ReadFile(filepath.Join(dir, en.Name()))
		if err != nil {
			w.t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			found = append(found, en.Name())
		}
	}
	return found
}

// Decision 2.12: forget takes text out for good, and a rebuild does not bring it back.
func TestForgetSession(t *testing.T) {
	for _, o := range append([]string{"chatgpt"}, jsonlOrigins...) {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			w.session("claude-code", "stays", say{"user", "the quinceboard stays"})
			if o == "chatgpt" {
				w.Write(t, place(o, "x"), export(conversation("c1", say{"user", "the zanzibarium code is quince"}), conversation("c2", say{"user", "other words"})))
			} else {
				w.session(o, "s1", say{"user", "the zanzibarium code is quince"}, say{"assistant", "noted zanzibarium"})
			}
			c := w.one("zanzibarium")
			if len(w.inState("zanzibarium")) == 0 {
				t.Fatal("the test looks for the wrong bytes: they should be in the index")
			}
			plan, err := w.e().PlanForget(t.Context(), c.SessionID, "")
			if err != nil {
				t.Fatal(err)
			}
			out, err := w.e().Forget(t.Context(), plan)
			if err != nil || out.Spans == 0 {
				t.Fatal(out, err)
			}
			if found := w.inState("zanzibarium"); found != nil {
				t.Errorf("the word is still in %v", found)
			}
			w.absent("zanzibarium")
			w.one("quinceboard")
			if got := w.inspect(c.EvidenceID); got.Outcome != engine.Excluded || got.Target != nil || !strings.Contains(got.Meaning, "forget") {
				t.Errorf("%s", got.Text())
			}
			if o != "chatgpt" { // what the session gains later stays out too
				w.append(place(o, "s1"), turns(o, "s1-", 2, say{"user", "zanzibarium again"}))
				w.absent("zanzibarium")
			} else {
				w.one("other words")
			}
			w.rebuild()
			w.absent("zanzibarium")
			if got := w.inspect(c.EvidenceID); got.Outcome != engine.Excluded {
				t.Errorf("after a rebuild: %s", got.Text())
			}
			w.reopen()
			if st, err := w.e().Status(t.Context()); err != nil || st.Forgotten != 1 {
				t.Errorf("status counts %d forgotten", st.Forgotten)
			}
			if found := w.inState("zanzibarium"); found != nil {
				t.Errorf("after a rebuild the word is in %v", found)
			}
		})
	}
}

// Between the plan and its execution another process makes the index anew: what is
// taken out is what was named, whatever number it has now.
func TestForgetAfterAnotherRebuild(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "m1", say{"user", "the zanzibarium code"})
	c := w.one("zanzibarium")
	plan, err := w.e().PlanForget(t.Context(), c.SessionID, "")
	if err != nil {
		t.Fatal(err)
	}
	w.session("claude-code", "a0", say{"user", "the quinceboard stays"})
	old := time.Now().Add(-time.Hour) // so that it is read first
	if err := os.Chtimes(w.Path(place("claude-code", "a0")), old, old); err != nil {
		t.Fatal(err)
	}
	other := w.open()
	if _, err := other.Rebuild(t.Context(), func(float64, float64, string) {}); err != nil {
		t.Fatal(err)
	}
	if out, err := w.e().Forget(t.Context(), plan); err != nil || out.Spans != 1 {
		t.Error(out, err)
	}
	w.absent("zanzibarium")
	w.one("quinceboard")
}

func TestForgetEvidence(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "the zanzibarium code"}, say{"assistant", "noted and kept"})
	c := w.one("zanzibarium")
	for _, id := range []string{"nonsense", strings.Replace(c.EvidenceID, ":0", ":7", 1)} {
		if _, err := w.e().PlanForget(t.Context(), "", id); err == nil {
			t.Errorf("forget of %s is planned", id)
		}
	}
	plan, err := w.e().PlanForget(t.Context(), "", c.EvidenceURI)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := w.e().Forget(t.Context(), plan); err != nil || out.Spans != 1 {
		t.Fatal(out, err)
	}
	for range 2 {
		w.absent("zanzibarium")
		if got := w.inspect(c.EvidenceID); got.Outcome != engine.Excluded || got.Target != nil {
			t.Errorf("%s", got.Text())
		}
		kept := w.verified(w.one("noted and kept").EvidenceID)
		for _, s := range kept.Window {
			if strings.Contains(s.Text, "zanzibarium") {
				t.Error("forgotten text is in a window")
			}
		}
		if st := w.status(); st.EvidenceSpans != 1 {
			t.Errorf("%s", st.Text())
		}
		w.rebuild()
	}
}

// A damaged list of forgotten text is a clear fault: text that was taken out must not
// come back because a file is broken.
func TestDamagedTombstones(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "the zanzibarium code"})
	w.one("zanzibarium")
	name := filepath.Join(w.places().StateDir, "forgotten.json")
	for _, text := range []string{"", "{", `{"version":2}`, "\xff\xfe", `{"version":1,"sessions":{}}`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out := w.recall("zanzibarium")
		if out.Outcome != engine.Unavailable || len(out.Candidates) > 0 || !strings.Contains(out.Meaning, "forgotten.json") {
			t.Errorf("%q: %s", text, out.Text())
		}
		st, err := w.e().Status(t.Context())
		if err != nil || st.Outcome != engine.Unavailable || st.Next != nil && strings.Contains(st.Next.Target, "rebuild") {
			t.Errorf("%q: %v %s", text, err, st.Text())
		}
		if _, err := w.e().Rebuild(t.Context(), nil); err == nil {
			t.Errorf("%q: rebuilt", text)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	w.one("zanzibarium")
}

// A damaged index is refused with the way out, and the way out works.
func TestDamagedIndex(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "the zanzibarium code"})
	w.one("zanzibarium")
	w.reopen()
	files, _ := filepath.Glob(filepath.Join(w.places().StateDir, "index-*.sqlite"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	if err := os.WriteFile(files[0], bytes.Repeat([]byte("garbage "), 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := w.e().Recall(t.Context(), engine.RecallIn{Query: "zanzibarium"})
	if err != nil || out.Outcome != engine.Unavailable || !strings.Contains(out.Meaning, "mooncite rebuild") {
		t.Errorf("%v %s", err, out.Text())
	}
	st, err := w.e().Status(t.Context())
	if err != nil || st.Outcome != engine.Unavailable || st.Next == nil || st.Next.Target != "mooncite rebuild" {
		t.Errorf("%v %s", err, st.Text())
	}
	w.rebuild()
	w.one("zanzibarium")
	if err := os.WriteFile(filepath.Join(w.places().StateDir, "current"), []byte("../../etc/passwd\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.recall("zanzibarium"); out.Outcome != engine.Unavailable || !strings.Contains(out.Meaning, "rebuild") {
		t.Errorf("%s", out.Text())
	}
	w.rebuild()
	w.one("zanzibarium")
}

// Another program's state directory stays as it is.
func TestForeignState(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"other marker": {".mooncite-state": "@whenmoon-afk/mooncite-state-v1\n"},
		"no marker":    {"index.sqlite": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for f, text := range files {
				w.Write(t, ".local/state/mooncite/"+f, text)
			}
			before := testenv.Fingerprint(t, w.places().StateDir)
			if _, err := engine.Open(t.Context(), w.places(), engine.Options{}); err == nil || !strings.Contains(err.Error(), "another program") {
				t.Errorf("%v", err)
			}
			if after := testenv.Fingerprint(t, w.places().StateDir); after != before {
				t.Error("it was changed")
			}
		})
	}
}
