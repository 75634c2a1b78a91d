package transcript

import (
	"encoding/json"
	"fmt"
	"testing"
)

// A set has all its names however it grew and was saved, stays bounded, and has few
// others while it may grow.
func TestNameSet(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 100, 1000, 5000} {
		var s nameSet
		for i := range n {
			s.add(fmt.Sprintf("name-%d", i))
			if i%97 == 0 {
				b, err := json.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				s = nameSet{}
				if err := json.Unmarshal(b, &s); err != nil {
					t.Fatal(err)
				}
			}
		}
		var once nameSet
		once.room(n)
		for i := range n {
			once.add(fmt.Sprintf("name-%d", i))
		}
		others := 0
		for i := range 10_000 {
			if name := fmt.Sprintf("name-%d", i); i < n && (!s.has(name) || !once.has(name)) {
				t.Fatalf("%d names: %s is lost", n, name)
			}
			if once.has(fmt.Sprintf("other-%d", i)) {
				others++
			}
		}
		if len(s.Bits) > maxNameBytes || len(once.Bits) > maxNameBytes {
			t.Errorf("%d names take %d and %d bytes", n, len(s.Bits), len(once.Bits))
		}
		if n <= maxNameBytes && others > 700 {
			t.Errorf("%d names: %d of 10,000 others", n, others)
		}
	}
}
