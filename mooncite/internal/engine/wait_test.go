package engine_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/engine"
)

// Decision 2.2: what changed is read before the answer if that fits in a quarter of a
// second. Here it never does, because somebody else writes. The answer says so, and its
// next is the same question with all that narrowed it.
func TestRecallWaitsAQuarterOfASecond(t *testing.T) {
	w := newWorld(t)
	rel := w.session("claude-code", "s1", say{"user", "alpha one"})
	e, err := engine.Open(t.Context(), w.places(), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.t.Cleanup(func() { e.Close() })
	ask := func(in engine.RecallIn) engine.RecallOut {
		t.Helper()
		held, err := privdir.Lock(t.Context(), filepath.Join(w.places().StateDir, "writer.lock"))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Unlock()
		began := time.Now()
		out, err := e.Recall(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		// A machine may be slow, but not that slow.
		if took := time.Since(began); took < 250*time.Millisecond || took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if out.Outcome != engine.Inconclusive || out.Searched.Pending == 0 || out.Next == nil || out.Next.Target != engine.ToolRecall {
			t.Fatalf("%s", out.Text())
		}
		return out
	}
	first := ask(engine.RecallIn{Query: "alpha", Limit: 7, Project: "project:app-0123456789abcdef", SessionID: "s1", After: at(0), Before: at(9),
		Role: "user", SourceOrigin: "claude-code", Order: "newest", DebugTiming: true})
	want := map[string]any{"query": "alpha", "limit": 7.0, "project": "project:app-0123456789abcdef", "session_id": "s1", "after": at(0), "before": at(9),
		"role": "user", "source_origin": "claude-code", "order": "newest", "debug_timing": true}
	if diff := cmp.Diff(want, first.Next.Arguments); diff != "" {
		t.Error(diff)
	}
	if err := e.Refresh(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	w.append(rel, turns("claude-code", "s1-", 1, say{"user", "beta two"}))
	later := ask(engine.RecallIn{Query: "beta", Role: "user", Order: "oldest"})
	want = map[string]any{"query": "beta", "limit": 5.0, "role": "user", "order": "oldest"}
	if diff := cmp.Diff(want, later.Next.Arguments); diff != "" {
		t.Error(diff)
	}
}
