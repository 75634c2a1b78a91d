package sandbox_test

import (
	"sync"
	"testing"

	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/fault"
)

// TestManyStarts, several at a time: each has its walls or says why not, and here each has them.
func TestManyStarts(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	places := make(chan struct{}, 8)
	for range 200 {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			p, err := w.place.Start(t.Context(), sandbox.Spec{Args: []string{"/bin/true"}, Dir: w.root})
			if err != nil {
				t.Errorf("%v: %v", err, fault.From(err).Err)
				return
			}
			p.Wait()
		})
	}
	all.Wait()
}
