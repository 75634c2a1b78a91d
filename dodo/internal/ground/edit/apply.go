package edit

import (
	"bytes"
	"slices"
	"sort"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// An Edit replaces a text by another. Where Find has a CR, both texts are taken as typed;
// otherwise LF stands for any line break, and the file's own are kept.
type Edit struct {
	Find, Replace string
	// ReplaceAll replaces every place, from the first on, and needs at least one.
	ReplaceAll bool
	// ExpectedCount is how many places there must be; 0 means 1. Places that overlap
	// are counted one by one.
	ExpectedCount int
}

// Options are what the caller knows of the file. The zero value is UTF-8, or what a
// byte order mark says.
type Options struct {
	// MaxBytes bounds the result; 0 is 64 MiB.
	MaxBytes int64
	// Encoding is utf-8, utf-16le or utf-16be; empty asks the byte order mark.
	Encoding string
}

const defaultMax = 64 << 20

func (o Options) limit() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return defaultMax
}

// A Result is what became of a file.
type Result struct {
	After  []byte
	Counts []int    // places replaced by each edit
	Notes  []string // what the caller should be told; product text, nothing of the file
}

// Total is how many places were replaced.
func (r Result) Total() int {
	n := 0
	for _, c := range r.Counts {
		n += c
	}
	return n
}

// Apply does the edits one after the other, each on the result of those before it. It does
// all or fails: with AMBIGUOUS_EDIT when a text is there more or less often than expected
// (detail editIndex, expected, found and either matches or nearest), INVALID_INPUT,
// FILE_TOO_LARGE (the result would be above MaxBytes; nothing of that size was allocated)
// or UNSUPPORTED_ENCODING. file is not changed; After may share its memory when it is the same.
func Apply(file []byte, edits []Edit, o Options) (Result, error) {
	text, f, err := decode(file, o.Encoding)
	if err != nil {
		return Result{}, err
	}
	var r Result
	now, size := text, int64(len(file))
	for i, e := range edits {
		a, err := newAttempt(now, e)
		if err != nil {
			return Result{}, fault.From(err).With("editIndex", i)
		}
		if err := a.refuse(i, text); err != nil {
			return Result{}, err
		}
		if now, err = a.replace(f, &size, o.limit()); err != nil {
			return Result{}, fault.From(err).With("editIndex", i)
		}
		r.Counts = append(r.Counts, a.count)
		if a.adapted && r.Notes == nil {
			r.Notes = []string{"the file has CRLF line endings: the new lines got them too"}
		}
	}
	r.After = f.encode(now)
	return r, nil
}

// ReplaceAll replaces every place of a text, of which there may be none.
func ReplaceAll(file []byte, find, replace string, o Options) (Result, error) {
	text, f, err := decode(file, o.Encoding)
	if err != nil {
		return Result{}, err
	}
	a, err := newAttempt(text, Edit{Find: find, Replace: replace})
	if err != nil {
		return Result{}, err
	}
	if a.count == 0 {
		return Result{After: file, Counts: []int{0}}, nil
	}
	size := int64(len(file))
	after, err := a.replace(f, &size, o.limit())
	if err != nil {
		return Result{}, err
	}
	return Result{After: f.encode(after), Counts: []int{a.count}}, nil
}

// An attempt is one edit on one text.
type attempt struct {
	edit    Edit
	raw     []byte
	seen    surface
	finder  *finder
	layout  layout
	count   int   // places, left to right without overlap
	firsts  []int // the first of them, in seen.text
	adapted bool

	lineEnd int  // where the line of the place before ends
	lineCR  bool // and whether with CRLF
}

func newAttempt(raw []byte, e Edit) (*attempt, error) {
	a := &attempt{edit: e, raw: raw}
	find, replace := []byte(e.Find), []byte(e.Replace)
	switch {
	case len(find) == 0:
		return a, fault.New(contract.InvalidInput, "the text to find is empty").WithHint("give the exact text that is to be replaced; write_file makes a new file")
	case !utf8.Valid(find) || !utf8.Valid(replace):
		return a, fault.New(contract.InvalidInput, "the texts of an edit must be valid UTF-8").WithHint("give them as plain text")
	}
	a.finder = newFinder(find)
	if bytes.IndexByte(find, '\r') >= 0 {
		a.seen = surface{text: raw}
		a.layout = layout{replace: replace}
	} else {
		a.seen = fold(raw)
		a.layout = newLayout(find, replace)
	}
	for i := a.finder.next(a.seen.text, 0); i >= 0; i = a.finder.next(a.seen.text, i+len(find)) {
		if a.count++; len(a.firsts) < maxMatches {
			a.firsts = append(a.firsts, i)
		}
	}
	return a, nil
}

// replace makes the new text. size is the file's size in its encoding, before and after.
func (a *attempt) replace(f form, size *int64, limit int64) ([]byte, error) {
	// First the size alone, then the bytes: nothing is allocated for what is refused.
	var grown int64
	perPlace := int64(f.size(a.layout.replace))
	cr := int64(f.size([]byte{'\r'}))
	find := int64(f.size(a.finder.find))
	length := int64(len(a.raw))
	refuse := func(bytes int64) error {
		return fault.New(contract.FileTooLarge, "the file would become larger than the limit").
			WithHint("write less, or ask the owner about the limit readFileBytes").With("limit", limit).With("bytes", bytes)
	}
	// Line breaks are looked at one by one at every place: first what there will be without them.
	if least := *size + int64(a.count)*(perPlace-find) - int64(len(a.seen.crs))*cr; least > limit {
		return nil, refuse(least)
	}
	a.each(func(start, end int, crs []bool) {
		for _, c := range crs {
			if c {
				grown += cr
				length++
			}
		}
		replaced := int64(end - start - len(a.finder.find)) // CRs of the file
		grown += perPlace - find - replaced*cr
		length += int64(len(a.layout.replace) - (end - start))
	})
	if *size+grown > limit {
		return nil, refuse(*size + grown)
	}
	*size += grown
	out := make([]byte, 0, length)
	done := 0
	a.each(func(start, end int, crs []bool) {
		out = append(out, a.raw[done:start]...)
		from := 0
		for j, c := range crs {
			if c {
				out = append(append(out, a.layout.replace[from:a.layout.breaks[j]]...), '\r')
				from = a.layout.breaks[j]
				a.adapted = true
			}
		}
		out = append(out, a.layout.replace[from:]...)
		done = end
	})
	return append(out, a.raw[done:]...), nil
}

// each calls f with every place as it stands in the raw text, and which line breaks of the
// replacement get a CR there. f must not keep crs.
func (a *attempt) each(f func(start, end int, crs []bool)) {
	text, marks, m := a.seen.text, a.seen.crs, len(a.finder.find)
	crs := make([]bool, len(a.layout.breaks))
	a.lineEnd = -1
	before := 0 // marks before the place
	for i := a.finder.next(text, 0); i >= 0; i = a.finder.next(text, i+m) {
		if len(marks) == 0 {
			f(i, i+m, nil)
			continue
		}
		before += sort.SearchInts(marks[before:], i)
		inside := sort.SearchInts(marks[before:], i+m)
		if len(crs) > 0 {
			a.endings(crs, i, marks[before:before+inside])
		}
		f(i+before, i+m+before+inside, crs)
	}
}

// endings decides about each line break of the replacement of the place at i, in whose
// text the LF at marks have a CR.
func (a *attempt) endings(crs []bool, i int, marks []int) {
	var replaced []bool
	if a.layout.found > 0 {
		for at, c := range a.finder.find {
			if c == '\n' {
				_, has := slices.BinarySearch(marks, i+at)
				replaced = append(replaced, has)
			}
		}
	}
	beside := a.beside(i, i+len(a.finder.find))
	for j := range crs {
		crs[j] = a.layout.isCR(j, func(k int) bool { return replaced[k] }, beside)
	}
}

// beside reports whether the line that a place is in ends with CRLF; of a last line
// without an end, whether the line before does. Places come in order: where the line ends
// is remembered, because many places may be in one long line.
func (a *attempt) beside(start, end int) bool {
	text := a.seen.text
	if a.lineEnd < end {
		a.lineEnd = len(text)
		if at := bytes.IndexByte(text[end:], '\n'); at >= 0 {
			a.lineEnd = end + at
		} else if at := bytes.LastIndexByte(text[:start], '\n'); at >= 0 {
			_, a.lineCR = slices.BinarySearch(a.seen.crs, at)
			return a.lineCR
		}
		_, a.lineCR = slices.BinarySearch(a.seen.crs, a.lineEnd)
	}
	return a.lineCR
}
