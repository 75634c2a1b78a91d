package edit

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// A placed hunk has its place in the file.
type placed struct {
	*hunk
	line    int  // of the file, from 0
	old     int  // lines of the file it replaces
	literal bool // its line ends are as typed
	atEnd   bool // a line of it is the last of the file
}

// fits reports whether the old lines of a hunk stand at a line of the file.
func (p *placed) fits(t *target, line int) bool {
	if line < 0 || line+p.old > t.lines() {
		return false
	}
	for _, l := range p.lines {
		if l.kind == '+' {
			continue
		}
		text, end := t.line(line)
		if p.literal {
			text = bytes.TrimSuffix(t.raw[t.start(line):t.start(line+1)], crlf[1:])
		}
		if !bytes.Equal(l.text, text) || l.bare && len(end) > 0 {
			return false
		}
		line++
	}
	return !p.atEnd || line == t.lines()
}

// place finds the place of every hunk, in the order of the file.
func (f *FilePatch) place(t *target) ([]placed, []string, error) {
	var notes []string
	out := make([]placed, 0, len(f.hunks))
	moved := 0
	for i := range f.hunks {
		p := placed{hunk: &f.hunks[i]}
		for _, l := range p.lines {
			if l.kind != '+' {
				p.old++
				p.literal = p.literal || bytes.HasSuffix(l.text, []byte{'\r'})
			}
			p.atEnd = p.atEnd || l.bare
		}
		if p.old == 0 {
			if t.lines() > 0 {
				return nil, nil, p.conflict(f, "it has no line of the file by which its place could be checked").
					WithHint("give at least one line of the file before or behind the new ones")
			}
			out = append(out, p)
			continue
		}
		if p.line = p.at - 1; p.at > 0 && p.fits(t, p.line) {
			out = append(out, p)
			continue
		}
		if moved++; moved > maxMoved {
			return nil, nil, fault.New(contract.ResourceLimit, "more than %d hunks of one file are not at the lines that they say", maxMoved).
				WithHint("read the file and make the patch for what is there").With("path", f.Path)
		}
		places := p.search(t)
		switch len(places) {
		case 1:
			p.line = places[0]
			if p.at > 0 {
				notes = append(notes, fmt.Sprintf("hunk %d was applied at line %d, moved by %+d lines", p.number, p.line+1, p.line+1-p.at))
			} else {
				notes = append(notes, fmt.Sprintf("hunk %d says no line; it was applied at line %d, the only place where it fits", p.number, p.line+1))
			}
			out = append(out, p)
		case 0:
			return nil, nil, p.nowhere(f, t)
		default:
			lines := make([]int, len(places))
			for k, l := range places {
				lines[k] = l + 1
			}
			return nil, nil, p.conflict(f, fmt.Sprintf("its lines are not at line %d, but at %d other places", max(p.at, 1), len(places))).
				WithHint("give more lines around it, or the right line number").With("places", lines)
		}
	}
	noted := 0
	for i := range f.hunks {
		if f.hunks[i].noted {
			noted++
		}
	}
	if noted > 0 {
		notes = append(notes, fmt.Sprintf("the counts in the headers of %d hunks were missing or wrong and were not used", noted))
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].line < out[j].line })
	for i := 1; i < len(out); i++ {
		if out[i].line < out[i-1].line+out[i-1].old || out[i].old == 0 {
			return nil, nil, out[i].conflict(f, fmt.Sprintf("it covers lines that hunk %d covers too", out[i-1].number)).
				WithHint("put the changes of neighbouring lines into one hunk")
		}
	}
	return out, notes, nil
}

// maxPlaces is how many places of a hunk are looked for.
const maxPlaces = 20

// search finds where in the file the old lines of a hunk stand, up to maxPlaces.
func (p *placed) search(t *target) []int {
	if p.atEnd {
		if line := t.lines() - p.old; p.fits(t, line) {
			return []int{line}
		}
		return nil
	}
	var block []byte
	for _, l := range p.lines {
		if l.kind != '+' {
			block = append(append(block, '\n'), l.text...)
		}
	}
	block = append(block, '\n')
	var text []byte
	if p.literal {
		text = slices.Concat(crlf[1:], t.raw, crlf[1:])
	} else {
		if t.padded == nil {
			t.padded = slices.Concat(crlf[1:], fold(t.raw).text, crlf[1:])
		}
		text = t.padded
	}
	var places []int
	f := newFinder(block)
	line, from := 0, 0
	for i := f.next(text, 0); i >= 0 && len(places) < maxPlaces; i = f.next(text, i+1) {
		line += bytes.Count(text[from:i], crlf[1:])
		from = i
		if p.fits(t, line) {
			places = append(places, line)
		}
	}
	return places
}

func (p *placed) conflict(f *FilePatch, why string) *fault.Error {
	return fault.New(contract.Conflict, "hunk %d of the patch (line %d) does not apply: %s", p.number, p.hunk.line, why).
		With("path", f.Path).With("hunk", p.number).With("line", p.hunk.line)
}

// nowhere says what comes nearest to a hunk that fits nowhere.
func (p *placed) nowhere(f *FilePatch, t *target) error {
	var block []byte
	for _, l := range p.lines {
		if l.kind != '+' {
			block = append(append(block, l.text...), '\n')
		}
	}
	err := p.conflict(f, "its old lines are not in the file")
	n, ok := nearest(t.raw, block)
	if !ok {
		return err.WithHint("nothing in the file is like them; read the file again")
	}
	return err.WithHint("line %d of the file is nearest: %s; read the lines around it and make the patch anew", n.Line, n.Difference).With("nearest", n)
}
