package edit

import (
	"bytes"
	"slices"

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
			return nil, nil, fault.New(contract.Conflict, "the patch creates a file that is there already").
				WithHint("read the file, then patch what is there").With("path", f.Path)
		}
		after, err = f.create(o)
		return after, nil, err
	}
	text, form, err := decode(before, o.Encoding)
	if err != nil {
		return nil, nil, err
	}
	t := newTarget(text)
	places, notes, err := f.place(t)
	if len(form.bom) > 0 && (err != nil || len(notes) > 0) && f.spellsBOM() {
		// Perhaps the patch has the file's mark as a part of its first line. A line may also begin
		// with that character by itself.
		marked := newTarget(slices.Concat(bomText, text))
		if p, n, e := f.place(marked); e == nil && (err != nil || len(n) < len(notes)) {
			t, places, notes, err, form.bom = marked, p, n, nil, nil
		}
	}
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
	out := make([]byte, 0, len(t.raw)+f.added())
	line := 0
	for _, p := range places {
		out = append(out, t.raw[t.start(line):t.start(p.line)]...)
		out = p.write(out, t)
		line = p.line + p.old
	}
	out = append(out, t.raw[t.start(line):]...)
	after = form.encode(out)
	if err := f.checkSize(len(after), o); err != nil {
		return nil, nil, err
	}
	return after, notes, nil
}

// checkSize refuses a result above the bound.
func (f *FilePatch) checkSize(n int, o Options) error {
	if limit := o.limit(); int64(n) > limit {
		return fault.New(contract.FileTooLarge, "the file would become larger than the limit").
			WithHint("write less, or ask the owner about the limit readFileBytes").With("path", f.Path).With("limit", limit).With("bytes", n)
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

// spellsBOM reports whether an old line of the patch begins with the character that is also
// the byte order mark.
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
