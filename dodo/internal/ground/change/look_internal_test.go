package change

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"localmcp/dodo/internal/ground/workspace"
)

// TestGlimpseOfWhatComesAndGoes: a file that is renamed away and made anew, as some editors save,
// is there or it is not; that it went while it was looked at is no failure.
func TestGlimpseOfWhatComesAndGoes(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(root, workspace.Options{AllowUnsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	p, err := workspace.ParsePath("f")
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := tree.Parent(p, false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	wg.Go(func() {
		for name := filepath.Join(root, "f"); !stop.Load(); {
			err := errors.Join(os.WriteFile(name, nil, 0o600), os.Rename(name, name+"~"), os.Remove(name+"~"))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 20_000 {
		if _, err := glimpse(d, "f"); err != nil {
			t.Fatal(err)
		}
	}
}
