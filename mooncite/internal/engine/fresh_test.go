package engine_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"localmcp/mooncite/internal/engine"
)

// Decision 2.3: growth of every producer is found by the next recall, whatever the
// result would have been without it, and costs no citation.
func TestGrowthIsFoundAtOnce(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "the harbor deploy went well"}, say{"assistant", "noted"})
			first := w.one("harbor deploy")
			w.append(rel, turns(o, "s1-", 2, say{"user", "the harbor deploy failed badly today"}))
			out := w.ask(engine.RecallIn{Query: "harbor deploy", Order: "newest"})
			if len(out.Candidates) != 2 || !strings.Contains(out.Candidates[0].Excerpt, "badly") {
				t.Fatalf("%v", excerpts(out))
			}
			trust := "full_verified"
			if o == "pi" {
				trust = "append_trusted"
			}
			if out.TrustState != trust {
				t.Errorf("trust %s, want %s", out.TrustState, trust)
			}
			for _, id := range append(ids(out), first.EvidenceID) {
				kind := w.verified(id).Locator.PrefixDigestKind
				if (kind == "append_chain_sha256") != (o == "pi") {
					t.Errorf("prefix digest kind %s", kind)
				}
			}
			if st := w.status(); st.Outcome != engine.Ready || st.EvidenceSpans != 3 || st.TrustState != trust {
				t.Errorf("%s", st.Text())
			}
			if st := w.rebuild(); st.TrustState != "full_verified" || st.LastRebuildOutcome != "published" || st.EvidenceSpans != 3 {
				t.Errorf("%s", st.StatusOut.Text())
			}
			w.verified(first.EvidenceID)
		})
	}
}

// A grown projection equals one that was read whole.
func TestGrowthEqualsReplacement(t *testing.T) {
	for _, o := range []string{"omp", "claude-code", "codex"} {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "alpha one"}, say{"assistant", "beta two"})
			w.one("alpha")
			w.append(rel, turns(o, "s1-", 2, say{"tool", "gamma three"}, say{"user", "delta four"}))
			w.one("gamma")
			grown := w.status()
			if got := w.rebuild(); got.Generation != grown.Generation || got.EvidenceSpans != grown.EvidenceSpans || got.Records != grown.Records {
				t.Errorf("grown\n%s\nread whole\n%s", grown.Text(), got.StatusOut.Text())
			}
		})
	}
}

// An unfinished last line is not read; it is when it is finished.
func TestUnfinishedLine(t *testing.T) {
	for _, o := range jsonlOrigins {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session(o, "s1", say{"user", "alpha one"})
			w.one("alpha")
			next := turns(o, "s1-", 1, say{"user", "marzipan two"})
			w.append(rel, next[:len(next)/2])
			w.recall("marzipan")
			w.append(rel, next[len(next)/2:])
			w.verified(w.one("marzipan").EvidenceID)
			w.absent("zeppelin")
		})
	}
}

// A rewritten file of a producer that may rewrite is replaced: its old text is gone.
func TestRewriteReplaces(t *testing.T) {
	for _, o := range []string{"omp", "claude-code", "codex"} {
		t.Run(o, func(t *testing.T) {
			w := newWorld(t)
			w.session(o, "other", say{"user", "zebra"})
			rel := w.session(o, "s1", say{"user", "alpha one"}, say{"assistant", "beta two"})
			w.one("alpha")
			w.overwrite(rel, header(o, "s1")+turns(o, "s1-", 0, say{"user", "omega one"}, say{"assistant", "beta two"}, say{"user", "gamma"}))
			w.verified(w.one("omega").EvidenceID)
			w.absent("alpha")
			w.verified(w.one("gamma").EvidenceID)
			if st := w.status(); st.Outcome != engine.Ready || st.TrustState != "full_verified" || st.EvidenceSpans != 4 {
				t.Errorf("%s", st.Text())
			}
		})
	}
}

// Decision 2.3: a Pi file that shrank, was rewritten or became another file keeps its
// own last-good text and is named; everything else is fresh.
func TestChangedPiKeepsLastGood(t *testing.T) {
	for name, change := range map[string]func(w *world, rel string){
		"shrunk":    func(w *world, rel string) { w.overwrite(rel, header("pi", "s1")) },
		"rewritten": func(w *world, rel string) { w.overwrite(rel, strings.Replace(w.read(rel), "alpha", "omega", 1)) },
		"replaced": func(w *world, rel string) {
			text := w.read(rel) + turns("pi", "s1-", 2, say{"user", "omega"})
			if err := os.Rename(w.Write(w.t, "elsewhere", text), w.Path(rel)); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			rel := w.session("pi", "s1", say{"user", "alpha one"}, say{"assistant", "beta two"})
			other := w.session("pi", "s2", say{"user", "gamma"})
			w.session("claude-code", "c1", say{"user", "delta"})
			w.one("alpha")
			change(w, rel)
			w.append(other, turns("pi", "s2-", 1, say{"user", "epsilon"}))
			w.one("epsilon")
			w.one("alpha")
			if out := w.recall("omega"); out.Outcome != engine.Inconclusive || out.Conclusive || len(out.Warnings) == 0 {
				t.Errorf("omega: %s", out.Text())
			}
			st := w.status()
			if st.Outcome != engine.Degraded || len(st.Problems) != 1 || st.Problems[0].Name != "s1.jsonl" || st.Problems[0].Reason != "source_changed_during_refresh" {
				t.Fatalf("%s", st.Text())
			}
			if st.Next == nil || st.Next.Target != "mooncite rebuild" {
				t.Errorf("next %+v", st.Next)
			}
			// An origin the file is not of is searched conclusively.
			if out := w.ask(engine.RecallIn{Query: "omega", SourceOrigin: "claude-code"}); out.Outcome != engine.NoMatch || !out.Conclusive {
				t.Errorf("claude: %s", out.Text())
			}
			w.reopen()
			if again := w.status(); again.Errors != st.Errors || len(again.Problems) != 1 {
				t.Errorf("after reopening: %s", again.Text())
			}
			if st := w.rebuild(); st.Outcome != engine.Ready {
				t.Errorf("%s", st.StatusOut.Text())
			}
		})
	}
}

// A new time on a file changes nothing.
func TestTouchChangesNothing(t *testing.T) {
	w := newWorld(t)
	var rels []string
	for _, o := range jsonlOrigins {
		rels = append(rels, w.session(o, "s1", say{"user", "alpha " + o}))
	}
	rels = append(rels, place("chatgpt", "x"))
	w.Write(t, place("chatgpt", "x"), export(conversation("c1", say{"user", "alpha chatgpt"})))
	before := ids(w.ask(engine.RecallIn{Query: "alpha", Limit: 20}))
	generation := w.status().Generation
	for _, rel := range rels {
		w.touch(rel, time.Now().Add(-time.Hour))
	}
	st := w.status()
	if st.Outcome != engine.Ready || st.Generation != generation || st.TrustState != "full_verified" {
		t.Errorf("%s", st.Text())
	}
	after := ids(w.ask(engine.RecallIn{Query: "alpha", Limit: 20}))
	if len(before) != 5 || len(after) != 5 {
		t.Fatalf("%v, %v", before, after)
	}
	for _, id := range before {
		w.verified(id)
	}
}

// Decision 2.9: what vanished from an authorized root stays searchable until a rebuild.
func TestVanishedFile(t *testing.T) {
	w := newWorld(t)
	rel := w.session("claude-code", "s1", say{"user", "alpha one"})
	w.session("claude-code", "s2", say{"user", "beta two"})
	id := w.one("alpha").EvidenceID
	w.remove(rel)
	c := w.one("alpha")
	if c.SourcePresent || c.EvidenceID != id {
		t.Errorf("%+v", c)
	}
	w.absent("zeppelin") // what vanished was read
	got := w.inspect(id)
	if got.Outcome != engine.Missing || got.Conclusive || got.Target == nil || got.Target.Text != "alpha one" || got.Target.SourcePresent || len(got.Window) != 0 {
		t.Errorf("%s", got.Text())
	}
	if got.Next != nil && strings.Contains(got.Next.Target, "rebuild") {
		t.Errorf("a rebuild would take the text away: %+v", got.Next)
	}
	if st := w.status(); st.VanishedFiles != 1 || st.Outcome != engine.Ready || st.Next != nil {
		t.Errorf("%s", st.Text())
	}
	w.reopen()
	if c := w.one("alpha"); c.SourcePresent {
		t.Error("present after reopening")
	}
	// It comes back.
	w.session("claude-code", "s1", say{"user", "alpha one"})
	if c := w.one("alpha"); !c.SourcePresent || c.EvidenceID != id {
		t.Errorf("%+v", c)
	}
	w.verified(id)
	w.remove(rel)
	w.one("alpha")
	w.rebuild()
	w.absent("alpha")
}

// A root that vanished takes no text with it, and no other root's freshness.
func TestVanishedRoot(t *testing.T) {
	w := newWorld(t)
	w.session("codex", "s1", say{"user", "alpha one"})
	rel := w.session("claude-code", "s2", say{"user", "beta two"})
	id := w.one("alpha").EvidenceID
	w.remove(".codex")
	w.append(rel, turns("claude-code", "s2-", 1, say{"user", "gamma three"}))
	w.one("gamma")
	if c := w.one("alpha"); c.SourcePresent {
		t.Error("the source of a vanished root is said to be present")
	}
	if got := w.inspect(id); got.Outcome != engine.Missing || got.Target == nil {
		t.Errorf("%s", got.Text())
	}
	w.absent("zeppelin")
	if st := w.status(); st.VanishedFiles != 1 || !st.SearchUsable {
		t.Errorf("%s", st.Text())
	}
	w.session("codex", "s1", say{"user", "alpha one"})
	if c := w.one("alpha"); !c.SourcePresent {
		t.Error("the source of a root that came back is said to be gone")
	}
}

// A root that is not authorized any more is dropped at once, and comes back at once.
func TestDeauthorizedRoot(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha one"})
	w.Write(t, "extra/proj/s2.jsonl", turns("claude-code", "x", 0, say{"user", "beta two"}))
	r := registration(w, "claude-code", "extra")
	if _, err := w.places().Register(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	id := w.one("beta").EvidenceID
	if err := w.places().Unregister(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	// Nothing was refreshed since: the citation is refused all the same.
	if got := w.inspect(id); got.Outcome != engine.Excluded || got.Target != nil {
		t.Errorf("%s", got.Text())
	}
	w.absent("beta")
	w.one("alpha")
	if got := w.inspect(id); got.Outcome != engine.Unavailable || got.Target != nil {
		t.Errorf("%s", got.Text())
	}
	if _, err := w.places().Register(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := w.one("beta").EvidenceID; got != id {
		t.Errorf("%s, before %s", got, id)
	}
}

// Decision 2.7: registering an automatic root by hand, or switching automatic roots
// off, changes no citation.
func TestAutomaticRootRegisteredByHand(t *testing.T) {
	w := newWorld(t)
	w.session("claude-code", "s1", say{"user", "alpha one"})
	id := w.one("alpha").EvidenceID
	r := registration(w, "claude-code", ".claude/projects")
	if _, err := w.places().Register(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := w.one("alpha").EvidenceID; got != id {
		t.Errorf("%s, before %s", got, id)
	}
	w.reopen()
	w.Set("MOONCITE_AUTO_SOURCES", "0")
	if got := w.one("alpha").EvidenceID; got != id {
		t.Errorf("%s, before %s", got, id)
	}
	if err := w.places().Unregister(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if out := w.recall("alpha"); out.Outcome != engine.Unavailable {
		t.Errorf("%s", out.Text())
	}
}

// The contract's trusted append: Pi's admitted bytes are not read again when the same
// file has grown. What was changed in them shows at inspection, and at a rebuild.
func TestPiAppendReadsNoPrefix(t *testing.T) {
	w := newWorld(t)
	rel := w.session("pi", "s1", say{"user", "alpha one"}, say{"assistant", "beta two"})
	id := w.one("alpha").EvidenceID
	w.overwrite(rel, strings.Replace(w.read(rel), "alpha", "ALPHA", 1)+turns("pi", "s1-", 2, say{"user", "gamma three"}))
	// One refresh only: a file so young is looked at once more by the next.
	out := w.recall("gamma")
	if out.Outcome != engine.Matches || !out.Conclusive || out.TrustState != "append_trusted" {
		t.Errorf("%s", out.Text())
	}
	if got := w.inspect(id); got.Outcome != engine.Stale || got.Target.Text != "alpha one" {
		t.Errorf("%s", got.Text())
	}
	if st := w.rebuild(); st.TrustState != "full_verified" {
		t.Errorf("%s", st.StatusOut.Text())
	}
	if got := w.verified(id); got.Target.Text != "ALPHA one" {
		t.Errorf("%s", got.Text())
	}
}
