package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHides: a directory that leads to what no command may see is hidden by every name.
func TestHides(t *testing.T) {
	dir := t.TempDir()
	state, open := filepath.Join(dir, "up", "state"), filepath.Join(dir, "open")
	for _, d := range []string{state, open} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b := New(Options{Hidden: []string{state}})
	for name, to := range map[string]string{"itself": state, "above": filepath.Dir(state), "open-link": open} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
		if got := b.hides(link); got != (name != "open-link") {
			t.Errorf("a link to %s: %v", to, got)
		}
	}
	if !b.hides(state) || !b.hides(filepath.Dir(state)) || b.hides(open) {
		t.Error("by their own names")
	}
}
