package transcript

import (
	"testing"

	"localmcp/mooncite/internal/evidence"
)

func TestShapes(t *testing.T) {
	for _, x := range []struct {
		o    evidence.Origin
		rel  string
		want Shape
	}{
		{evidence.Pi, "a.jsonl", Lines},
		{evidence.Pi, "a/b/c.jsonl", Lines},
		{evidence.Pi, "a/b.json", None},
		{evidence.OMP, "a.jsonl", None},
		{evidence.OMP, "p/a.jsonl", Lines},
		{evidence.OMP, "p/a/Scout.jsonl", Lines},
		{evidence.OMP, "p/a/Scout/Deeper.jsonl", Lines},
		{evidence.OMP, "p/a/Scout.md", None},
		{evidence.OMP, "p/a/1.bash.log", None},
		{evidence.Claude, "p/s.jsonl", Lines},
		{evidence.Claude, "p/agent-1.jsonl", Lines},
		{evidence.Claude, "s.jsonl", None},
		{evidence.Claude, "p/.jsonl", None},
		{evidence.Claude, "p/history.jsonl", None},
		{evidence.Claude, "p/sessions-index.json", None},
		{evidence.Claude, "p/s/x.jsonl", None},
		{evidence.Claude, "p/s/subagents/agent-1.jsonl", Lines},
		{evidence.Claude, "p/s/subagents/agent-1.meta.json", None},
		{evidence.Claude, "p/s/subagents/other.jsonl", None},
		{evidence.Claude, "p/s/workflows/w/subagents/agent-1.jsonl", Lines},
		{evidence.Claude, "p/s/tool-results/x.txt", None},
		{evidence.Claude, "p/s/tool-results/agent-1.jsonl", None},
	} {
		if got := ShapeOf(File{x.o, x.rel}); got != x.want {
			t.Errorf("%s %s: shape %d, want %d", x.o, x.rel, got, x.want)
		}
	}
	for _, x := range []struct {
		o    evidence.Origin
		rel  string
		want bool
	}{
		{evidence.Pi, "", true}, {evidence.Pi, "a/b/c/d", true},
		{evidence.OMP, "", true}, {evidence.OMP, "p", true}, {evidence.OMP, "p/a", true}, {evidence.OMP, "p/a/Scout", true},
		{evidence.Claude, "", true}, {evidence.Claude, "p", true}, {evidence.Claude, "p/s", true},
		{evidence.Claude, "p/s/subagents", true}, {evidence.Claude, "p/s/workflows/w", true},
		{evidence.Claude, "p/s/tool-results", false}, {evidence.Claude, "p/memory", false},
	} {
		if got := Descend(x.o, x.rel); got != x.want {
			t.Errorf("%s %q: descend %v", x.o, x.rel, got)
		}
	}
}
