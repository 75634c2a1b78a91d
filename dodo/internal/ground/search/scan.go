package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf16"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/safefile"
)

// Bounds of a search (spec dodo-behaviour 4.3).
const (
	candidatesMax = 20_000
	workersMax    = 8
	lineTextMax   = 500 // characters of a line that are shown
	leadMax       = 100 // of them before the match, when the line is longer
)

// A query is what one search looks for in one workspace.
type query struct {
	*pattern
	paths      []workspace.Path // where to look: directories and files
	glob       *ignore.Glob     // which names; nil is all
	ignored    bool             // also what the ordinary layer leaves out
	fileMax    int64            // size in bytes above which a file is passed over
	texts      bool             // lines are wanted, not only how many
	hashes     bool             // and the hashes of the files
	before     int              // lines around
	after      int
	show       int   // how many lines, or files, are wanted
	from       place // only what comes after it
	candidates int   // how many files are looked at; candidatesMax but in tests
}

// A place is a line of a file; the zero place comes before all.
type place struct {
	path string
	line int
}

// A match is a line that matches, as it is shown.
type match struct {
	line, column  int
	text          string
	shift         int // characters of UTF-16 left out before text
	before, after []string
}

// A fileMatch is what was found in a file.
type fileMatch struct {
	path    workspace.Path
	count   int // lines that match
	matches []match
	hash    string
}

// A finding is the outcome of a search. Its files are in the order of their paths, and as
// many as are needed for what was to be kept, or some more.
type finding struct {
	files   []fileMatch
	total   int // lines that match, in all files
	with    int // files that have one
	scanned int // files looked at
	large   int // files passed over for their size
	binary  int // files that are no text
	closed  int // files that could not be read
	cut     bool
}

// scan searches a workspace.
func scan(ctx context.Context, t *workspace.Tree, q *query, pool *sync.Pool) (*finding, error) {
	f, over, err := scanOnce(ctx, t, q, pool, nil)
	if err != nil || !over {
		return f, err
	}
	// There are more files than are looked at: those that count are the first by path.
	end, err := boundary(ctx, t, q)
	if err != nil {
		return nil, err
	}
	if f, _, err = scanOnce(ctx, t, q, pool, &end); err == nil {
		f.cut = true
	}
	return f, err
}

// boundary is a path before which as many files stand as are looked at.
func boundary(ctx context.Context, t *workspace.Tree, q *query) (end string, err error) {
	n := 0
	enough := errors.New("enough")
	for _, p := range q.paths {
		err := t.Walk(ctx, workspace.WalkOptions{Start: p, Ignored: q.ignored}, func(v workspace.Visit) error {
			wanted, err := q.wants(&v)
			if !wanted {
				return err
			}
			if n++; n > q.candidates {
				end = v.Path.String()
				return enough
			}
			end = v.Path.String() + "\x00" // when there are no more, all count
			return nil
		})
		if err == enough {
			break
		}
		if err != nil && err != workspace.ErrCut {
			return "", err
		}
	}
	return end, nil
}

// wants reports whether a file is to be searched. Of a directory where none can be it gives
// fs.SkipDir.
func (q *query) wants(v *workspace.Visit) (bool, error) {
	path := v.Path.String()
	if v.Type != safefile.Regular {
		if q.glob != nil && !onTheWay(path, q.glob.Dir()) {
			return false, fs.SkipDir
		}
		return false, nil
	}
	return q.glob == nil || q.glob.Match(path), nil
}

// scanOnce searches all files before end, or all. over tells that there are too many.
func scanOnce(ctx context.Context, t *workspace.Tree, q *query, pool *sync.Pool, end *string) (f *finding, over bool, err error) {
	s := &scanner{q: q, pool: pool, found: &finding{}}
	defer func() {
		for _, w := range s.idle {
			pool.Put(w.buffers)
		}
	}()
	var candidates atomic.Int64
	tooMany := errors.New("too many")
	for _, p := range q.paths {
		o := workspace.WalkOptions{Start: p, Ignored: q.ignored, Workers: min(runtime.GOMAXPROCS(0), workersMax)}
		err := t.Walk(ctx, o, func(v workspace.Visit) error {
			if v.Err != nil {
				s.count(func(f *finding) { f.closed++ })
				return nil
			}
			wanted, err := q.wants(&v)
			if !wanted || end != nil && pathOrder(v.Path.String(), *end) >= 0 {
				return err
			}
			if end == nil && candidates.Add(1) > int64(q.candidates) {
				return tooMany
			}
			return s.file(ctx, v)
		})
		switch err {
		case nil:
		case tooMany:
			return nil, true, nil
		case workspace.ErrCut:
			s.found.cut = true
		default:
			return nil, false, err
		}
	}
	s.trim()
	return s.found, false, nil
}

// A scanner searches files on several goroutines.
type scanner struct {
	q    *query
	pool *sync.Pool

	mu    sync.Mutex // over what follows
	idle  []*worker
	found *finding
	kept  int
	last  string // files beyond it are counted only; empty when there are none yet
}

// A worker is what one goroutine needs for a while.
type worker struct {
	*matcher
	*buffers
}

// buffers are for the bytes of a file, and for its text when that is other bytes.
type buffers struct{ raw, text []byte }

func (s *scanner) worker() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		w := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return w
	}
	b, _ := s.pool.Get().(*buffers)
	if b == nil {
		b = new(buffers)
	}
	return &worker{newMatcher(s.q.pattern), b}
}

func (s *scanner) count(f func(*finding)) {
	s.mu.Lock()
	f(s.found)
	s.mu.Unlock()
}

// file searches one file.
func (s *scanner) file(ctx context.Context, v workspace.Visit) error {
	w := s.worker()
	defer func() {
		s.mu.Lock()
		s.idle = append(s.idle, w)
		s.mu.Unlock()
	}()
	raw, _, isText, err := v.LoadText(w.raw, s.q.fileMax)
	if cap(raw) > cap(w.raw) {
		w.raw = raw[:0]
	}
	if err != nil {
		s.count(func(f *finding) {
			if errors.Is(err, contract.FileTooLarge) {
				f.large++
			} else {
				f.closed++
			}
		})
		return ctx.Err()
	}
	text := w.decode(raw)
	if !isText || bytes.IndexByte(text[:min(len(text), head)], 0) >= 0 {
		s.count(func(f *finding) { f.binary++ })
		return nil
	}
	path := v.Path.String()
	s.mu.Lock()
	shown := s.last == "" || pathOrder(path, s.last) <= 0
	s.mu.Unlock()
	m := fileMatch{path: v.Path}
	w.search(ctx, s.q, path, text, shown, &m)
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.count > 0 && bytes.IndexByte(text, 0) >= 0 {
		s.count(func(f *finding) { f.binary++ })
		return nil
	}
	if s.q.hashes && m.count > 0 && shown {
		m.hash = contract.Hash(raw)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found.scanned++
	if m.count == 0 {
		return nil
	}
	s.found.total += m.count
	s.found.with++
	if !shown || s.q.texts && len(m.matches) == 0 {
		return nil
	}
	s.found.files = append(s.found.files, m)
	s.kept += s.weight(&m)
	if s.kept > 4*s.q.show+100 {
		s.trim()
	}
	return nil
}

func (s *scanner) weight(m *fileMatch) int {
	if s.q.texts {
		return len(m.matches)
	}
	return 1
}

// trim keeps the first files that have one match more than are wanted, or are one more.
func (s *scanner) trim() {
	slices.SortFunc(s.found.files, func(a, b fileMatch) int { return pathOrder(a.path.String(), b.path.String()) })
	s.kept = 0
	for i := range s.found.files {
		s.kept += s.weight(&s.found.files[i])
		if s.kept > s.q.show {
			s.last = s.found.files[i].path.String()
			clear(s.found.files[i+1:])
			s.found.files = s.found.files[:i+1]
			return
		}
	}
}

// onTheWay reports whether files below dir can be in a directory that is among them, or above.
func onTheWay(path, dir string) bool {
	return dir == "" || path == dir || strings.HasPrefix(dir, path+"/") || strings.HasPrefix(path, dir+"/")
}

// pathOrder compares paths name by name, as a walk comes to them.
func pathOrder(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			if x == '/' {
				return -1
			}
			if y == '/' {
				return 1
			}
			return cmp.Compare(x, y)
		}
	}
	return cmp.Compare(len(a), len(b))
}

// head is how much of a file is looked at to know whether it is text, which has no NUL; what
// follows is looked at when there is a match.
const head = 64 << 10

// decode gives the text of a file: UTF-16 when a mark at its start says so, else the bytes
// as they are, without a mark of UTF-8.
func (w *worker) decode(raw []byte) []byte {
	text := bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	if len(raw) >= 2 && (raw[0] == 0xff && raw[1] == 0xfe || raw[0] == 0xfe && raw[1] == 0xff) {
		w.text = fromUTF16(w.text[:0], raw[2:], raw[0] == 0xfe)
		text = w.text
	}
	return text
}

// fromUTF16 appends the UTF-8 of a text; what is no character becomes U+FFFD.
func fromUTF16(to, raw []byte, bigEndian bool) []byte {
	unit := func(i int) rune {
		if bigEndian {
			return rune(raw[i])<<8 | rune(raw[i+1])
		}
		return rune(raw[i+1])<<8 | rune(raw[i])
	}
	i := 0
	for ; i+1 < len(raw); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			whole := rune(utf8.RuneError)
			if i+3 < len(raw) {
				whole = utf16.DecodeRune(r, unit(i+2))
			}
			if r = whole; whole != utf8.RuneError {
				i += 2
			}
		}
		to = utf8.AppendRune(to, r)
	}
	if i < len(raw) {
		to = utf8.AppendRune(to, utf8.RuneError)
	}
	return to
}

// search looks through a text. With shown it gathers the lines that are wanted, else it
// only counts.
func (w *worker) search(ctx context.Context, q *query, path string, text []byte, shown bool, to *fileMatch) {
	w.reset(text)
	number, counted := 1, 0 // the line that begins at counted
	for from := 0; ; {
		l, ok := w.next(ctx, from)
		if !ok {
			return
		}
		from = l.end + 1
		to.count++
		if !q.texts || !shown || len(to.matches) > q.show {
			continue
		}
		number += bytes.Count(text[counted:l.start], lineFeed)
		counted = l.start
		if q.from.path != "" {
			if c := cmp.Or(pathOrder(path, q.from.path), cmp.Compare(number, q.from.line)); c <= 0 {
				continue
			}
		}
		at := max(w.locate(ctx, l), 0)
		line := text[l.start:l.end]
		m := match{line: number, column: column(line, at)}
		m.text, m.shift = window(line, at)
		m.before = linesBefore(text, l.start, q.before)
		m.after = linesAfter(text, l.end, q.after)
		to.matches = append(to.matches, m)
	}
}

var lineFeed = []byte("\n")

// window is what is shown of a line: all of it, or what is around the match, and how many
// characters of UTF-16 were left out before.
func window(line []byte, at int) (text string, shift int) {
	line = bytes.TrimSuffix(line, []byte("\r"))
	at = min(at, len(line))
	if len(line) <= lineTextMax || utf8.RuneCount(line[:min(len(line), 4*lineTextMax+1)]) <= lineTextMax && len(line) <= 4*lineTextMax {
		return string(line), 0
	}
	start := 0
	if utf8.RuneCount(line[:at])+lineTextMax/5 > lineTextMax {
		start = at
		for range leadMax {
			_, n := utf8.DecodeLastRune(line[:start])
			start -= n
		}
	}
	return firstRunes(line[start:], lineTextMax), column(line, start) - 1
}

func firstRunes(b []byte, n int) string {
	end := 0
	for ; n > 0 && end < len(b); n-- {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	return string(b[:end])
}

// linesBefore are up to n lines that end before a line begins.
func linesBefore(text []byte, start, n int) []string {
	if n == 0 {
		return nil
	}
	list := []string{}
	for ; n > 0 && start > 0; n-- {
		end := start - 1
		start = bytes.LastIndexByte(text[:end], '\n') + 1
		list = append(list, shortened(text[start:end]))
	}
	slices.Reverse(list)
	return list
}

// linesAfter are up to n lines that begin after a line ends.
func linesAfter(text []byte, end, n int) []string {
	if n == 0 {
		return nil
	}
	list := []string{}
	for ; n > 0 && end+1 < len(text); n-- {
		start := end + 1
		if end = bytes.IndexByte(text[start:], '\n'); end < 0 {
			end = len(text)
		} else {
			end += start
		}
		list = append(list, shortened(text[start:end]))
	}
	return list
}

func shortened(line []byte) string {
	return firstRunes(bytes.TrimSuffix(line, []byte("\r")), lineTextMax)
}

// places are the paths to look at, in order and none within another.
func places(list []workspace.Path) []workspace.Path {
	slices.SortFunc(list, func(a, b workspace.Path) int { return strings.Compare(a.String(), b.String()) })
	var out []workspace.Path
	for _, p := range list {
		if !slices.ContainsFunc(out, func(o workspace.Path) bool { return p.Within(o) }) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b workspace.Path) int { return pathOrder(a.String(), b.String()) })
	return out
}
