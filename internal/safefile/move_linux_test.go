package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"localmcp/internal/safefile"
)

func TestMoveAndExchange(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"a/f": "old", "b/f": "new"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	holds := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}

	if err := r.Exchange("a", "b"); err != nil {
		t.Fatal(err)
	}
	holds("a/f", "new")
	holds("b/f", "old")
	if err := r.Move("a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	holds("b/f", "old")
	if err := r.Move("b", "c"); err != nil {
		t.Fatal(err)
	}
	holds("c/f", "old")
	if err := r.Exchange("a", "b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a name that is free: %v", err)
	}
	for _, name := range []string{"", ".", "..", "c/f", "/c"} {
		if err := r.Move(name, "d"); !errors.Is(err, safefile.ErrName) {
			t.Errorf("Move(%q): %v", name, err)
		}
		if err := r.Exchange("c", name); !errors.Is(err, safefile.ErrName) {
			t.Errorf("Exchange(%q): %v", name, err)
		}
	}
	holds("c/f", "old")
}
