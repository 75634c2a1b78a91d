package engine

import (
	"fmt"
	"testing"

	"localmcp/mooncite/internal/evidence"
)

// A citation that is in use is never lost, however many others are given out.
func TestRecentKeepsWhatIsUsed(t *testing.T) {
	var r recent
	at := func(i int) evidence.Locator { return evidence.Locator{Entry: fmt.Sprint(i)} }
	for i := range 10 * maxRecent {
		r.put(1, at(i), int64(i))
		if d, ok := r.get(1, at(0)); !ok || d != 0 {
			t.Fatalf("lost after %d", i)
		}
		if d, ok := r.get(1, at(max(0, i-maxRecent/2+2))); !ok || d != int64(max(0, i-maxRecent/2+2)) {
			t.Fatalf("one of the last is lost after %d", i)
		}
	}
	if len(r.docs)+len(r.older) > 2*maxRecent {
		t.Errorf("%d and %d are kept", len(r.docs), len(r.older))
	}
	r.put(2, at(1), 7)
	if _, ok := r.get(2, at(0)); ok {
		t.Error("a place in another publication is given")
	}
	if _, ok := r.get(1, at(1)); ok {
		t.Error("a place in a newer publication is given")
	}
}
