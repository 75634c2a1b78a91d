package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/source"
	"localmcp/mooncite/internal/transcript"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rules are simple ones, so that these tests stand on no parser: *.jsonl and
// *.jsonl.zst anywhere but in directories named "skip".
var rules = source.Rules{
	Shape: func(f transcript.File) transcript.Shape {
		switch {
		case strings.HasSuffix(f.Rel, ".jsonl"):
			return transcript.Lines
		case strings.HasSuffix(f.Rel, ".jsonl.zst"):
			return transcript.Packed
		}
		return transcript.None
	},
	Descend: func(o evidence.Origin, rel string) bool { return filepath.Base(rel) != "skip" },
}

func places(t testing.TB, h *testenv.Home) source.Places {
	t.Helper()
	p, err := source.PlacesOf(h.Env())
	must(t, err)
	return p
}

// register adds a root that is not there yet.
func register(t testing.TB, p source.Places, r source.Registration) {
	t.Helper()
	if added, err := p.Register(t.Context(), r); err != nil || !added {
		t.Fatalf("%v: added %t, %v", r, added, err)
	}
}

// rootAt finds a root by its directory.
func rootAt(t testing.TB, s source.Set, dir string) (int, source.Root) {
	t.Helper()
	for i, r := range s.Roots {
		if r.Dir == dir {
			return i, r
		}
	}
	t.Fatalf("no root at %s", dir)
	return 0, source.Root{}
}

// claudeTree opens the automatic Claude Code root of a home.
func claudeTree(t testing.TB, h *testenv.Home) *source.Tree {
	t.Helper()
	must(t, os.MkdirAll(h.Path(".claude/projects"), 0o700))
	s := places(t, h).Resolve()
	i, _ := rootAt(t, s, h.Path(".claude/projects"))
	tree, err := s.Open(i, rules)
	must(t, err)
	t.Cleanup(func() { tree.Close() })
	return tree
}
