package edit

import (
	"bytes"
	"sort"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Bounds of a diff that is shown.
const (
	MaxDiff      = 16 << 10 // bytes shown when the caller names no bound
	maxDiffInput = 2 << 20  // bytes of both sides together
	maxDiffLines = 100_000  // of both sides together
)

// Diff shows what changed, as a unified diff with three lines of context, at most max
// bytes of it (0: MaxDiff), cut behind a line. before is nil for a file that is created and
// after for one that is deleted. truncated says that the text is not all: it was cut, or
// the files are above 2 MiB or 100,000 lines together and there is none. Of what is not text, one
// line says that it differs. The diff need not be the smallest one.
func Diff(path string, before, after []byte, max int) (text string, truncated bool) {
	if max <= 0 {
		max = MaxDiff
	}
	if len(before)+len(after) > maxDiffInput {
		return "", true
	}
	from, to := quoted("a/"+path), quoted("b/"+path)
	if before == nil {
		from = devNull
	}
	if after == nil {
		to = devNull
	}
	b, _, err1 := decode(before, "")
	a, _, err2 := decode(after, "")
	if err1 != nil || err2 != nil {
		return "Binary files " + from + " and " + to + " differ\n", false
	}
	if bytes.Count(b, crlf[1:])+bytes.Count(a, crlf[1:]) > maxDiffLines {
		return "", true
	}
	u := unified{before: splitLines(string(b)), after: splitLines(string(a)), max: max}
	if !u.write(from, to, changes(u.before, u.after)) {
		return u.text[:strings.LastIndexByte(u.text[:max], '\n')+1], true
	}
	return u.text, false
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	lines := strings.SplitAfter(s, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	}
	return lines
}

// changes compares lines. The library looks for the smallest difference only up to some
// hundred lines, so the lines that both sides have once part the work: many small changes
// of a long file are shown as such.
func changes(a, b []string) []lcs.Diff {
	var out []lcs.Diff
	gap := func(a0, a1, b0, b1 int) {
		for a0 < a1 && b0 < b1 && a[a0] == b[b0] {
			a0, b0 = a0+1, b0+1
		}
		for a0 < a1 && b0 < b1 && a[a1-1] == b[b1-1] {
			a1, b1 = a1-1, b1-1
		}
		switch {
		case a0 == a1 && b0 == b1:
			return
		case a0 == a1 || b0 == b1:
			out = append(out, lcs.Diff{Start: a0, End: a1, ReplStart: b0, ReplEnd: b1})
			return
		}
		for _, d := range lcs.DiffLines(a[a0:a1], b[b0:b1]) {
			out = append(out, lcs.Diff{Start: a0 + d.Start, End: a0 + d.End, ReplStart: b0 + d.ReplStart, ReplEnd: b0 + d.ReplEnd})
		}
	}
	lastA, lastB := 0, 0
	for _, at := range anchors(a, b) {
		gap(lastA, at[0], lastB, at[1])
		lastA, lastB = at[0]+1, at[1]+1
	}
	gap(lastA, len(a), lastB, len(b))
	return out
}

// anchors are the places in both sides of lines that each has once, as many as stand in
// the same order.
func anchors(a, b []string) [][2]int {
	type place struct{ a, b int } // -1: not there; -2: more than once
	places := make(map[string]*place, len(a))
	for i, l := range a {
		if p := places[l]; p != nil {
			p.a = -2
		} else {
			places[l] = &place{i, -1}
		}
	}
	for i, l := range b {
		if p := places[l]; p != nil && p.b == -1 {
			p.b = i
		} else if p != nil {
			p.b = -2
		}
	}
	var both [][2]int
	for i, l := range a {
		if p := places[l]; p.a == i && p.b >= 0 {
			both = append(both, [2]int{i, p.b})
		}
	}
	// The longest run of growing places in b: ends[k] is the smallest end of one of k+1.
	var ends, before []int
	for i, at := range both {
		k := sort.Search(len(ends), func(k int) bool { return both[ends[k]][1] > at[1] })
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
		if k == 0 {
			before = append(before, -1)
		} else {
			before = append(before, ends[k-1])
		}
	}
	run := make([][2]int, len(ends))
	for k, i := len(ends)-1, lastOf(ends); k >= 0; k, i = k-1, before[i] {
		run[k] = both[i]
	}
	return run
}

func lastOf(list []int) int {
	if len(list) == 0 {
		return -1
	}
	return list[len(list)-1]
}

// contextLines stand before and behind a change.
const contextLines = 3

// unified is a diff that is being written.
type unified struct {
	before, after []string
	max           int
	text          string
	b             strings.Builder
}

// write writes the hunks and reports whether all of them fit.
func (u *unified) write(from, to string, diffs []lcs.Diff) bool {
	defer func() { u.text = u.b.String() }()
	if len(diffs) == 0 {
		return true
	}
	u.b.WriteString("--- " + from + "\n+++ " + to + "\n")
	for len(diffs) > 0 && u.b.Len() <= u.max {
		n := 1
		for n < len(diffs) && diffs[n].Start-diffs[n-1].End <= 2*contextLines {
			n++
		}
		u.hunk(diffs[:n])
		diffs = diffs[n:]
	}
	return u.b.Len() <= u.max
}

// hunk writes changes that stand close together.
func (u *unified) hunk(diffs []lcs.Diff) {
	first, last := diffs[0], diffs[len(diffs)-1]
	lead := min(contextLines, first.Start)
	trail := min(contextLines, len(u.before)-last.End)
	start := first.Start - lead
	u.b.WriteString("@@ -" + place(start, last.End+trail-start) + " +" + place(first.ReplStart-lead, last.ReplEnd+trail-first.ReplStart+lead) + " @@\n")
	for _, d := range diffs {
		u.lines(' ', u.before[start:d.Start])
		u.lines('-', u.before[d.Start:d.End])
		u.lines('+', u.after[d.ReplStart:d.ReplEnd])
		start = d.End
	}
	u.lines(' ', u.before[start:start+trail])
}

// place writes the lines of a hunk: the first and how many; of none, the one before.
func place(start, count int) string {
	switch count {
	case 0:
		return strconv.Itoa(start) + ",0"
	case 1:
		return strconv.Itoa(start + 1)
	}
	return strconv.Itoa(start+1) + "," + strconv.Itoa(count)
}

func (u *unified) lines(kind byte, lines []string) {
	for _, l := range lines {
		if u.b.Len() > u.max {
			return
		}
		u.b.WriteByte(kind)
		u.b.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			u.b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// quoted writes a name as git does: in quotes when it holds what would end or change it.
func quoted(name string) string {
	plain := true
	for _, c := range []byte(name) {
		if c < 0x20 || c == 0x7f || c == '"' || c == '\\' {
			plain = false
		}
	}
	if plain {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 0x20 || c == 0x7f:
			b.WriteByte('\\')
			o := strconv.FormatUint(uint64(c), 8)
			b.WriteString("000"[len(o):] + o)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
