package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
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
