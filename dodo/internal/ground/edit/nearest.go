package edit

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"localmcp/internal/fault"
)

// Nearest is the place of a file that a text which is not there comes closest to. It is for
// the caller to look at: nothing is ever written by it.
type Nearest struct {
	Line       int    `json:"line"`       // of the file, from 1: the first line that differs
	File       string `json:"file"`       // that line, cut to 160 bytes
	Find       string `json:"find"`       // the line of the text that should be there
	FindLine   int    `json:"findLine"`   // its number in the text, from 1
	Difference string `json:"difference"` // what differs, in words
}

// maxShort is the length from which a text is hardly somewhere by chance.
const maxShort = 20

// explainAbsence adds to a refusal why a text may not be there.
func (a *attempt) explainAbsence(f *fault.Error, index int, text []byte) error {
	if index > 0 {
		if before, err := newAttempt(text, a.edit); err == nil && before.count > 0 {
			return f.WithHint("it was in the file before the first edit of this call: edits work on the result of those before them").With("changedByEarlierEdit", true)
		}
	}
	if len(a.edit.Replace) >= maxShort {
		if line, there := lineOf(a.raw, []byte(a.edit.Replace)); there {
			return f.WithHint("the replacement is in the file already, at line %d: the edit may have been done before", line).With("replacementLine", line)
		}
	}
	n, ok := nearest(a.raw, []byte(a.edit.Find))
	if !ok {
		return f.WithHint("nothing in the file is like it; read the file again")
	}
	return f.WithHint("line %d is nearest: %s; read the lines around it and give them exactly", n.Line, n.Difference).With("nearest", n)
}

var numbered = regexp.MustCompile(`^ *[0-9]+\t`)

// nearest looks for what a text that is not there was meant to be. It goes over the file a
// fixed number of times.
func nearest(file, find []byte) (Nearest, bool) {
	if bare, ok := withoutNumbers(find); ok {
		if line, there := lineOf(file, bare); there {
			return compare(file, find, line, "the text holds the line numbers of a numbered read"), true
		}
	}
	if typed := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(string(find)); typed != string(find) {
		if line, there := lineOf(file, []byte(typed)); there {
			return compare(file, find, line, `the text holds written escapes such as \n where the file has the characters themselves`), true
		}
	}
	if line, name, there := disguised(file, find); there {
		return compare(file, find, line, name), true
	}
	if line, there := vote(file, find); there {
		return compare(file, find, line, "lines differ"), true
	}
	if line, k, there := alike(file, find); there {
		return compareAt(file, find, line, k, "the line is only similar"), true
	}
	return Nearest{}, false
}

// withoutNumbers takes the line numbers off a text whose every line has one.
func withoutNumbers(find []byte) ([]byte, bool) {
	lines := bytes.Split(bytes.TrimSuffix(find, []byte{'\n'}), []byte{'\n'})
	for i, l := range lines {
		m := numbered.Find(l)
		if m == nil {
			return nil, false
		}
		lines[i] = l[len(m):]
	}
	return bytes.Join(lines, []byte{'\n'}), true
}

// lineOf is the line on which a text begins, and whether it is there.
func lineOf(text, find []byte) (int, bool) {
	s := fold(text)
	i := newFinder(bytes.ReplaceAll(find, crlf, crlf[1:])).next(s.text, 0)
	if i < 0 {
		return 0, false
	}
	return 1 + bytes.Count(s.text[:i], []byte{'\n'}), true
}

// compare shows the first line that differs when the text is laid at a line of the file.
func compare(file, find []byte, line int, difference string) Nearest {
	have := linesFrom(file, line)
	want := find
	for k := 0; ; k++ {
		h, hRest, hMore := bytes.Cut(have, []byte{'\n'})
		w, wRest, wMore := bytes.Cut(want, []byte{'\n'})
		same := bytes.Equal(h, w)
		switch {
		case k == 0 && !same:
			same = bytes.HasSuffix(h, w) && wMore || !wMore && newFinder(w).next(h, 0) >= 0
		case !wMore:
			same = bytes.HasPrefix(h, w)
		}
		if same && wMore && !hMore {
			return Nearest{Line: line + k, File: preview(h), Find: preview(w), FindLine: k + 1, Difference: "the file ends behind this line, without a line break, and the text goes on"}
		}
		if !same || !wMore {
			at := 0
			if k == 0 {
				at = alignment(h, w)
			}
			return Nearest{Line: line + k, File: preview(h), Find: preview(w), FindLine: k + 1, Difference: difference + detail(h, w, at)}
		}
		have, want = hRest, wRest
	}
}

// compareAt is compare for one line of the text.
func compareAt(file, find []byte, line, k int, difference string) Nearest {
	h, _, _ := bytes.Cut(linesFrom(file, line), []byte{'\n'})
	w, _, _ := bytes.Cut(linesFrom(find, k), []byte{'\n'})
	return Nearest{Line: line, File: preview(h), Find: preview(w), FindLine: k, Difference: difference + detail(h, w, alignment(h, w))}
}

// linesFrom is the text from a line on.
func linesFrom(text []byte, line int) []byte {
	for ; line > 1; line-- {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	return text
}

// alignment is where in a line of the file the first line of a text, which may begin inside
// of it, lies best: where most characters from there on are the same.
func alignment(have, want []byte) int {
	best, most := 0, 0
	for i := range have[:min(len(have), maxGrams)] {
		n := 0
		for i+n < len(have) && n < min(len(want), maxGrams) && have[i+n] == want[n] {
			n++
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// detail names the first character in which two lines differ. at is where in the line of
// the file the other begins.
func detail(have, want []byte, at int) string {
	hasCR := bytes.HasSuffix(have, []byte{'\r'})
	if hasCR != bytes.HasSuffix(want, []byte{'\r'}) {
		if hasCR {
			return "; the file has CRLF here"
		}
		return "; the file has LF here"
	}
	ht, wt := bytes.TrimRight(have, " \t\r"), bytes.TrimRight(want, " \t\r")
	if bytes.Equal(ht, wt) {
		return fmt.Sprintf("; at the end of the line the file has %s, the text has %s", spaces(have[len(ht):]), spaces(want[len(wt):]))
	}
	hi, wi := bytes.TrimLeft(have, " \t"), bytes.TrimLeft(want, " \t")
	if bytes.Equal(hi, wi) && len(hi) > 0 {
		return fmt.Sprintf("; the file begins the line with %s, the text with %s", spaces(have[:len(have)-len(hi)]), spaces(want[:len(want)-len(wi)]))
	}
	i := 0
	for at+i < len(have) && i < len(want) && have[at+i] == want[i] {
		i++
	}
	for i > 0 && (at+i < len(have) && !utf8.RuneStart(have[at+i]) || i < len(want) && !utf8.RuneStart(want[i])) {
		i--
	}
	return fmt.Sprintf("; at column %d the file has %s, the text has %s", utf8.RuneCount(have[:at+i])+1, character(have[at+i:]), character(want[i:]))
}

// spaces says what a run of white space is made of.
func spaces(b []byte) string {
	tabs := bytes.Count(b, []byte{'\t'})
	blanks := bytes.Count(b, []byte{' '})
	switch {
	case tabs > 0 && blanks > 0:
		return fmt.Sprintf("%d tabs and %d spaces", tabs, blanks)
	case tabs > 0:
		return fmt.Sprintf("%d tabs", tabs)
	case blanks > 0:
		return fmt.Sprintf("%d spaces", blanks)
	}
	return "no white space"
}

// character names the first character of a text by its number: the character itself is
// not ours to put into a sentence.
func character(b []byte) string {
	if len(b) == 0 {
		return "the end of the line"
	}
	r, _ := utf8.DecodeRune(b)
	switch r {
	case ' ':
		return "a space"
	case '\t':
		return "a tab"
	}
	return fmt.Sprintf("U+%04X", r)
}

// maxVoters is how many lines of a text vote for its place.
const maxVoters = 2000

// vote finds the place where most lines of a text stand in their order of it, by lines
// that are equal without the white space around them.
func vote(file, find []byte) (line int, ok bool) {
	place := map[string]int{}
	k := 0
	for rest := find; len(rest) > 0 && k < maxVoters; k++ {
		var l []byte
		l, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if l = bytes.TrimSpace(l); telling(l) {
			if _, dup := place[string(l)]; !dup {
				place[string(l)] = k
			}
		}
	}
	if len(place) == 0 {
		return 0, false
	}
	votes := map[int]int{}
	best, most := 0, 0
	for n := 0; len(file) > 0; n++ {
		var l []byte
		l, file, _ = bytes.Cut(file, []byte{'\n'})
		if len(l) < tellingBytes {
			continue
		}
		if k, there := place[string(bytes.TrimSpace(l))]; there {
			at := n - k
			if votes[at]++; votes[at] > most && at >= 0 {
				best, most = at, votes[at]
			}
		}
	}
	return best + 1, most > 0
}

// tellingBytes is how many letters and digits a line must have to say something.
const tellingBytes = 3

// telling reports whether a line says more than a bracket does.
func telling(line []byte) bool {
	n := 0
	for _, c := range line {
		if c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' {
			if n++; n >= tellingBytes {
				return true
			}
		}
	}
	return false
}

// maxGrams bounds how much of one line is compared.
const maxGrams = 400

// alike finds the line of the file that has most of the three-byte pieces of the longest
// line of a text, and at least half of them.
func alike(file, find []byte) (line, of int, ok bool) {
	var model []byte
	k := 0
	for rest := find; len(rest) > 0; {
		var l []byte
		l, rest, _ = bytes.Cut(rest, []byte{'\n'})
		k++
		if l = bytes.TrimSpace(l); len(l) > len(model) {
			model, of = l, k
		}
	}
	model = model[:min(len(model), maxGrams)]
	if len(model) < 4 {
		return 0, 0, false
	}
	var has [1 << 12]uint32
	gram := func(b []byte) uint32 {
		return (uint32(b[0])*0x9e5 ^ uint32(b[1])*0x3b1 ^ uint32(b[2])*0x1f7) & (1<<12 - 1)
	}
	total := 0
	for i := 0; i+3 <= len(model); i++ {
		if g := gram(model[i:]); has[g] == 0 {
			has[g] = 1
			total++
		}
	}
	var seen [1 << 12]uint32 // the line in which a piece was counted last
	best := 0
	for n := uint32(1); len(file) > 0; n++ {
		var l []byte
		l, file, _ = bytes.Cut(file, []byte{'\n'})
		if len(l) < 3 {
			continue
		}
		l = bytes.TrimSpace(l)
		size := len(l)
		l = l[:min(len(l), 2*maxGrams)]
		hits := 0
		for i := 0; i+3 <= len(l); i++ {
			if g := gram(l[i:]); has[g] == 1 && seen[g] != n {
				seen[g] = n
				hits++
			}
		}
		// A long line has many pieces of everything: its length counts against it.
		score := 1000 * 2 * hits / (total + max(min(size, 2*maxGrams)-2, 1))
		if score > best {
			best, line = score, int(n)
		}
	}
	return line, of, best >= 500
}
