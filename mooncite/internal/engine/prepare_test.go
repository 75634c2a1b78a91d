package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"localmcp/mooncite/internal/engine"
)

// Processes that start at once on a machine where mooncite never ran all get the state
// directory, also when one is so quick that it has files there already.
func TestPrepareAtOnce(t *testing.T) {
	t.Parallel()
	w, rounds := newWorld(t), 300
	if testing.Short() {
		rounds = 30
	}
	for round := range rounds {
		places := w.places()
		places.StateDir = filepath.Join(t.TempDir(), strconv.Itoa(round))
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				err := engine.Prepare(places)
				if err == nil {
					err = os.WriteFile(filepath.Join(places.StateDir, "index-"+strconv.Itoa(i)+".sqlite"), nil, 0o600)
				}
				if err != nil {
					t.Errorf("round %d: %v %v", round, err, errors.Unwrap(err))
				}
			})
		}
		all.Wait()
	}
}

// Status says what it was told of the process, and of one that is not confined that.
func TestStatusSaysConfinement(t *testing.T) {
	t.Parallel()
	full := engine.Confinement{Level: "full", LandlockABI: 7, Seccomp: true}
	for given, want := range map[engine.Confinement]engine.Confinement{
		full: full,
		{}:   {Level: "no-landlock"},
	} {
		w := newWorld(t)
		e, err := engine.Open(t.Context(), w.places(), engine.Options{Confinement: given})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		st, err := e.Status(t.Context())
		if err != nil || st.Confinement != want || !strings.Contains(st.Text(), "\nConfinement: "+want.Level+"; ") {
			t.Errorf("%v %s", err, st.Text())
		}
	}
}
