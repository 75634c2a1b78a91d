package engine_test

import (
	"os"
	"strings"
	"testing"

	"localmcp/mooncite/internal/engine"
)

// A word behind the last line end is no record yet, and not absent either.
func TestWordInUnfinishedLine(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "alpha one"})
			w.one("alpha")
			next := turns(o, "s1-", 1, say{"user", "marzipan two"})
			w.append(rel, strings.TrimSuffix(next, "\n"))
			w.inconclusive(engine.RecallIn{Query: "marzipan"}, "unfinished")
			w.absent("zeppelin")
			w.append(rel, "\n")
			w.verified(w.one("marzipan").EvidenceID)
		})
	}
}

// An export that was cut off does not take away what a whole one gave.
func TestCutExport(t *testing.T) {
	w := newWorld(t)
	rel := place("chatgpt", "x")
	whole := export(conversation("c1", say{"user", "alpha one"}), conversation("c2", say{"user", "gamma three"}))
	w.Write(t, rel, whole)
	w.one("gamma")
	w.overwrite(rel, whole[:len(whole)-len(whole)/4])
	w.one("alpha")
	if out := w.recall("gamma"); len(out.Candidates) != 1 || out.Conclusive {
		t.Errorf("%s", out.Text())
	}
	if st := w.status(); st.Outcome != engine.Degraded || len(st.Problems) != 1 {
		t.Errorf("%s", st.Text())
	}
	w.overwrite(rel, whole)
	w.verified(w.one("gamma").EvidenceID)
	if st := w.status(); st.Outcome != engine.Ready {
		t.Errorf("%s", st.Text())
	}
}

// A first export that is cut off makes no answer conclusive.
func TestFirstExportCut(t *testing.T) {
	w := newWorld(t)
	whole := export(conversation("c1", say{"user", "alpha one"}), conversation("c2", say{"user", "gamma three"}))
	w.Write(t, place("chatgpt", "x"), whole[:len(whole)-len(whole)/4])
	w.one("alpha")
	w.inconclusive(engine.RecallIn{Query: "gamma"}, "damaged")
}

// When a root was moved behind a link and its real path was added, candidates verify.
func TestRootMovedBehindLink(t *testing.T) {
	w := newWorld(t)
	w.session("codex", "s1", say{"user", "marzipan"})
	w.one("marzipan")
	if err := os.Rename(w.Path(".codex/sessions"), w.Path("real")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.Path("real"), w.Path(".codex/sessions")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.places().Register(t.Context(), registration(w, "codex", "real")); err != nil {
		t.Fatal(err)
	}
	c := w.recall("marzipan").Candidates
	if len(c) != 1 || c[0].Copies != 1 || !c[0].SourcePresent {
		t.Fatalf("%+v", c)
	}
	w.verified(c[0].EvidenceID)
}

// Terms of a query are shown without control characters, and a filter is named.
func TestAnswersToOddQueries(t *testing.T) {
	w := newWorld(t)
	w.session("pi", "s1", say{"user", "alpha"})
	out := w.ask(engine.RecallIn{Query: "kum\x1bquat"})
	if strings.Contains(out.Text(), "\x1b") {
		t.Errorf("%q", out.Text())
	}
	if out := w.ask(engine.RecallIn{Query: "alpha", Role: "assistant"}); !strings.Contains(out.Meaning, "inside the filters") {
		t.Errorf("%s", out.Meaning)
	}
}

// A rebuild is remembered by the next process.
func TestRebuildIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.session("pi", "s1", say{"user", "alpha"})
	w.rebuild()
	w.reopen()
	if got := w.status().LastRebuildOutcome; got != "published" {
		t.Errorf("last rebuild %s", got)
	}
}
