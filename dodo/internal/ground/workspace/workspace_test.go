package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
)

// files makes a directory tree: names that end in "/" are directories.
func files(t testing.TB, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		at := filepath.Join(dir, name)
		if name[len(name)-1] == '/' {
			must(t, os.MkdirAll(at, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.WriteFile(at, []byte(text), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tree(t testing.TB, dir string, o Options) *Tree {
	t.Helper()
	tr, err := Open(dir, o)
	must(t, err)
	t.Cleanup(func() { tr.Close() })
	return tr
}

func parsed(t testing.TB, s string) Path {
	t.Helper()
	p, err := ParsePath(s)
	must(t, err)
	return p
}

func walked(t testing.TB, tr *Tree, o WalkOptions) []string {
	t.Helper()
	var mu sync.Mutex
	var got []string
	must(t, tr.Walk(context.Background(), o, func(v Visit) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, v.Path.String())
		return nil
	}))
	return got
}

func TestWalkIsTheSameInOrderAndInParallel(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{
		"a.go": "a", "b/c.go": "c", "b/d/e.go": "e", "b.go": "b", "empty/": "",
		"node_modules/x.js": "x", ".env": "secret", ".git/config": "g", "b/.git": "gitdir: x",
		".dodo-cs_1-0123456789abcdef": "stage",
	})
	must(t, os.Symlink("a.go", filepath.Join(dir, "link")))
	tr := tree(t, dir, Options{})
	want := []string{"a.go", "b", "b/c.go", "b/d", "b/d/e.go", "b.go", "empty"}
	if diff := cmp.Diff(want, walked(t, tr, WalkOptions{})); diff != "" {
		t.Error(diff)
	}
	got := walked(t, tr, WalkOptions{Workers: 3})
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"node_modules", "node_modules/x.js"}, walked(t, tr, WalkOptions{Ignored: true})[7:]); diff != "" {
		t.Error(diff)
	}
	if err := tr.Walk(context.Background(), WalkOptions{MaxEntries: 3}, func(Visit) error { return nil }); err != ErrCut {
		t.Errorf("a walk over its bound: %v", err)
	}
	if err := tr.Walk(context.Background(), WalkOptions{}, func(Visit) error { return fs.SkipAll }); err != fs.SkipAll {
		t.Errorf("a walk that is ended: %v", err)
	}
}

func TestDirRestoresAndExchanges(t *testing.T) {
	dir := t.TempDir()
	tr := tree(t, dir, Options{})
	d, made, err := tr.Parent(parsed(t, "x/y/f"), true)
	must(t, err)
	defer d.Close()
	if diff := cmp.Diff([]Path{{"x"}, {"x/y"}}, made, cmp.AllowUnexported(Path{})); diff != "" {
		t.Error(diff)
	}
	must(t, d.Restore(staged(t, d, "cs_1", "one", 0o640), "f"))
	must(t, d.Exchange(staged(t, d, "cs_1", "two", 0o600), "f"))
	data, in, err := tr.Read(parsed(t, "x/y/f"), 0)
	must(t, err)
	if string(data) != "two" || in.Mode != 0o600 {
		t.Errorf("f is %q, %+v", data, in)
	}
	must(t, d.Sweep("cs_1"))
	left, err := os.ReadDir(filepath.Join(dir, "x/y"))
	must(t, err)
	if len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// staged writes the first stage of a change.
func staged(t testing.TB, d *Dir, id, text string, mode fs.FileMode) string {
	t.Helper()
	name := StageName(id, 1)
	must(t, d.WriteStage(name, []byte(text), mode, nil))
	return name
}

func sorted(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

func refused(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
		return
	}
	f := fault.From(err)
	if f.Hint == "" {
		t.Errorf("%v has no hint", err)
	}
	if strings.Contains(f.Msg+f.Hint, os.TempDir()) {
		t.Errorf("%q shows a path of the machine", f.Msg+f.Hint)
	}
}
