package engine

import (
	"math/rand/v2"
	"testing"
)

// A text that is not folded is searched as its folded form is.
func TestFindSpaced(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "b", "ab", "-", ".", " ", "  ", "\n", "\u00a0", "\t ", "é", "索"}
	text := func(n int) string {
		var s string
		for range r.IntN(n) {
			s += pieces[r.IntN(len(pieces))]
		}
		return s
	}
	found := 0
	for range 200_000 {
		s, needle := text(12), folded(text(6)).text
		whole, plain := folded(s), fold{text: s}
		want, got := whole.find(needle), plain.findSpaced(needle)
		if (want < 0) != (got < 0) || want >= 0 && want != got {
			t.Fatalf("%q in %q: %d, folded %d", needle, s, got, want)
		}
		if got >= 0 {
			found++
		}
	}
	if found < 1000 {
		t.Errorf("only %d found", found)
	}
}
