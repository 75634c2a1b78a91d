package edit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
)

// One hunk against the naive rule: it is applied at its line if it fits there, else at the
// only place where it fits, else nowhere; and every line of the file that it does not
// remove keeps its bytes.
func TestPatchAgainstTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	applied, refused, moved := 0, 0, 0
	for range 15000 {
		kind := r.IntN(3)
		var raw []string // lines with their ends
		n := 1 + r.IntN(9)
		for i := range n {
			l := []string{"a", "b", "", "a b"}[r.IntN(4)]
			switch {
			case i == n-1 && r.IntN(3) == 0 && l != "":
			case kind == 1 || kind == 2 && r.IntN(2) == 0:
				l += "\r\n"
			default:
				l += "\n"
			}
			raw = append(raw, l)
		}
		bare := func(l string) string { return strings.TrimSuffix(strings.TrimSuffix(l, "\n"), "\r") }

		var body strings.Builder
		var old []string
		var lines []string // of the hunk
		changes, fresh := false, 0
		from := r.IntN(len(raw))
		for i := from; i < min(len(raw), from+1+r.IntN(4)); i++ {
			l := bare(raw[i])
			if r.IntN(12) == 0 {
				l += "x"
			}
			old = append(old, l)
			if r.IntN(2) == 0 {
				lines = append(lines, " "+l)
			} else {
				lines, changes = append(lines, "-"+l), true
			}
			if r.IntN(3) == 0 {
				lines, changes = append(lines, fmt.Sprintf("+new%d", fresh)), true
				fresh++
			}
		}
		if !changes {
			continue
		}
		at := 1 + r.IntN(len(raw)+1)
		fmt.Fprintf(&body, "%s@@ -%d,%d +1,%d @@\n%s\n", names, at, len(old), len(old)+fresh-count(lines, '-'), strings.Join(lines, "\n"))

		var places []int
		for i := 0; i+len(old) <= len(raw); i++ {
			if slices.EqualFunc(old, raw[i:i+len(old)], func(o, l string) bool { return o == bare(l) }) {
				places = append(places, i)
			}
		}
		place := -1
		switch {
		case slices.Contains(places, at-1):
			place = at - 1
		case len(places) == 1:
			place = places[0]
			moved++
		}
		after, notes, err := apply(body.String(), []byte(strings.Join(raw, "")))
		fail := func(why string) {
			t.Helper()
			t.Fatalf("%s: file %q, places %v\n%s\ngot %q, %q, %v", why, raw, places, body.String(), after, notes, err)
		}
		if place < 0 {
			if refused++; !errors.Is(err, contract.Conflict) {
				fail("no refusal")
			}
			continue
		}
		applied++
		if err != nil || (len(notes) == 1) != (place != at-1) {
			fail("not applied as it should be")
		}
		// What stays keeps its bytes; a last line gets an end only when a new line follows it.
		var want []string
		var isNew []bool
		add := func(l string, fresh bool) {
			if k := len(want) - 1; k >= 0 && !strings.HasSuffix(want[k], "\n") {
				want[k] += "?"
			}
			want, isNew = append(want, l), append(isNew, fresh)
		}
		for _, l := range raw[:place] {
			add(l, false)
		}
		i := place
		for _, l := range lines {
			switch l[0] {
			case ' ':
				add(raw[i], false)
				i++
			case '-':
				i++
			case '+':
				add(l[1:], true)
			}
		}
		for _, l := range raw[i:] {
			add(l, false)
		}
		got := strings.SplitAfter(string(after), "\n")
		if got[len(got)-1] == "" {
			got = got[:len(got)-1]
		}
		if len(got) != len(want) {
			fail("another number of lines")
		}
		for k, w := range want {
			if w := strings.TrimSuffix(w, "?"); isNew[k] && bare(got[k]) != w || !isNew[k] && got[k] != w && (want[k] == w || bare(got[k]) != w) {
				fail(fmt.Sprintf("line %d", k+1))
			}
			if kind == 1 && k < len(want)-1 && !strings.HasSuffix(got[k], "\r\n") && slices.ContainsFunc(raw, func(l string) bool { return strings.HasSuffix(l, "\n") }) {
				fail(fmt.Sprintf("line %d ends with LF in a file of CRLF", k+1))
			}
		}
		if len(got) > 0 && isNew[len(got)-1] && strings.HasSuffix(got[len(got)-1], "\n") != strings.HasSuffix(raw[len(raw)-1], "\n") {
			fail("the end of the file")
		}
	}
	t.Logf("%d applied, %d of them elsewhere, %d refused", applied, moved, refused)
	if moved < 100 || refused < 100 {
		t.Error("too few cases")
	}
}

func count(lines []string, kind byte) int {
	n := 0
	for _, l := range lines {
		if l[0] == kind {
			n++
		}
	}
	return n
}
