package edit

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

var bomText = []byte("\ufeff")

// Apply gives the file after the section; before is nil for a file that is to be created,
// and the result is nil for one that is to be deleted. Every hunk's old lines must be in
// the file exactly: at the place its header says, or else at exactly one other place; notes
// say which hunks were moved. No two hunks may cover the same line. It fails with CONFLICT (detail
// hunk, line of the patch and nearest or places), and as [Apply] of this package does.
//
// Where no old line of a hunk has a CR, its lines stand for the file's lines however they
// end, and new lines end as those they replace or follow. Where the hunk does not say that
// the file ends without a line break, that stays as it is.
func (f *FilePatch) Apply(before []byte, o Options) (after []byte, notes []string, err error) {
	if f.Action == Create {
		if before != nil {
			return nil, nil, fault.New(contract.Conflict, "the patch creates a file that is there already").With("path", f.Path)
		}
		after, err = f.create(o)
		return after, nil, err
	}
	text, form, err := decode(before, o.Encoding)
	if err != nil {
		return nil, nil, err
	}
	if len(form.bom) > 0 && f.spellsBOM() {
		text, form.bom = slices.Concat(bomText, text), nil
	}
	t := newTarget(text)
	places, notes, err := f.place(t)
	if err != nil {
		return nil, nil, err
	}
	if f.Action == Delete {
		return nil, notes, f.wholeFile(t, places)
	}
	least := len(before)
	for _, h := range f.hunks {
		for _, l := range h.lines {
			switch l.kind {
			case '+':
				least += form.size(l.text)
			case '-':
				least -= form.size(l.text) + form.size(crlf)
			}
		}
	}
	if err := f.checkSize(least, o); err != nil {
		return nil, nil, err
	}
	out := make([]byte, 0, len(text)+f.added())
	line := 0
	for _, p := range places {
		out = append(out, t.raw[t.start(line):t.start(p.line)]...)
		out = p.write(out, t)
		line = p.line + p.old
	}
	out = append(out, t.raw[t.start(line):]...)
	after = form.encode(out)
	return after, notes, f.checkSize(len(after), o)
}

// checkSize refuses a result above the bound.
func (f *FilePatch) checkSize(n int, o Options) error {
	if limit := o.limit(); int64(n) > limit {
		return fault.New(contract.ResourceLimit, "the file would become larger than the limit").With("path", f.Path).With("limit", limit).With("bytes", n)
	}
	return nil
}

// added is how many bytes the new lines of the section take at most, in UTF-8.
func (f *FilePatch) added() int {
	n := 2
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.kind != '-' {
				n += len(l.text) + 2
			}
		}
	}
	return n
}

// create is the text of a new file.
func (f *FilePatch) create(o Options) ([]byte, error) {
	out := make([]byte, 0, f.added())
	for _, h := range f.hunks {
		for _, l := range h.lines {
			out = append(out, l.text...)
			switch {
			case l.bare:
			case f.crlf:
				out = append(out, crlf...)
			default:
				out = append(out, '\n')
			}
		}
	}
	return out, f.checkSize(len(out), o)
}

// spellsBOM reports whether the patch has the byte order mark as part of a line.
func (f *FilePatch) spellsBOM() bool {
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.kind != '+' && bytes.HasPrefix(l.text, bomText) {
				return true
			}
		}
	}
	return false
}

// wholeFile holds that the hunks of a deletion name every line of the file.
func (f *FilePatch) wholeFile(t *target, places []placed) error {
	n := 0
	for _, p := range places {
		n += p.old
	}
	if n != t.lines() {
		return fault.New(contract.Conflict, "the patch deletes a file, but names %d of its %d lines", n, t.lines()).
			WithHint("use delete_path to delete a file whatever it holds").With("path", f.Path)
	}
	return nil
}

// A target is a text by its lines.
type target struct {
	raw    []byte
	starts []int32 // where lines begin, and the end of the text
	padded []byte  // the surface between two LF, made when it is needed
}

func newTarget(raw []byte) *target {
	t := &target{raw: raw, starts: make([]int32, 0, bytes.Count(raw, crlf[1:])+2)}
	t.starts = append(t.starts, 0)
	for i := 0; i < len(raw); {
		n := bytes.IndexByte(raw[i:], '\n') + 1
		if n == 0 {
			n = len(raw) - i
		}
		i += n
		t.starts = append(t.starts, int32(i))
	}
	return t
}

func (t *target) lines() int      { return len(t.starts) - 1 }
func (t *target) start(i int) int { return int(t.starts[i]) }

// line parts line i, from 0, into its text and its end: LF, CRLF or nothing.
func (t *target) line(i int) (text, end []byte) {
	l := t.raw[t.starts[i]:t.starts[i+1]]
	n := len(l)
	if n > 0 && l[n-1] == '\n' {
		n--
		if n > 0 && l[n-1] == '\r' {
			n--
		}
	}
	return l[:n], l[n:]
}

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
			return nil, nil, fault.New(contract.ResourceLimit, "more than %d hunks of one file are not at the lines that they say", maxMoved).With("path", f.Path)
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

// write appends what the hunk leaves of its lines.
func (p *placed) write(out []byte, t *target) []byte {
	line := p.line
	near := crlf[1:] // how a line ends here
	beside := func(i int) []byte {
		if i >= 0 && i < t.lines() {
			if _, end := t.line(i); len(end) > 0 {
				near = end
			}
		}
		return near
	}
	beside(line)
	beside(line - 1)
	var gone []int // removed lines whose ends no new line took yet
	tail := 0      // length of the end of the last line, if it is new
	for _, l := range p.lines {
		switch l.kind {
		case ' ':
			gone, tail = nil, 0
			beside(line)
			out = append(out, t.raw[t.start(line):t.start(line+1)]...)
			line++
		case '-':
			gone = append(gone, line)
			line++
		case '+':
			if n := len(out); n > 0 && out[n-1] != '\n' {
				out = append(out, near...) // it was the last line and is not any more
			}
			if len(gone) > 0 {
				beside(gone[0])
				gone = gone[1:]
			}
			end := near
			if p.literal || bytes.HasSuffix(l.text, crlf[:1]) {
				end = crlf[1:]
			}
			if l.bare {
				end = nil
			}
			out = append(append(out, l.text...), end...)
			tail = len(end)
		}
	}
	// A file that ended without a line break still does, unless the hunk says otherwise.
	if n := t.lines(); line == n && n > 0 && p.old > 0 && !p.marked {
		if _, end := t.line(n - 1); len(end) == 0 {
			out = out[:len(out)-tail]
		}
	}
	return out
}
