package sandbox_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/sandbox"
)

// TestAbandoned: a command comes up while its plan is made. Where there will be none, nothing
// is run and no process stays.
func TestAbandoned(t *testing.T) {
	w := newWorld(t)
	w.box.Probe(t.Context())
	wrong := errors.New("the workspace cannot be looked through")
	place := w.box.Place(w.root, filepath.Join(w.root, "../state/cache"), func(context.Context) (sandbox.Kept, error) { return sandbox.Kept{}, wrong })
	for range 5 {
		if _, err := place.Start(t.Context(), sandbox.Spec{Args: []string{"/bin/true"}, Dir: w.root, Mode: sandbox.Prefer}); !errors.Is(err, wrong) {
			t.Fatal(err)
		}
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a process stays: %d, %v", pid, err)
	}
}
