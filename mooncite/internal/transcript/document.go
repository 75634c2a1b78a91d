package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"localmcp/mooncite/internal/evidence"
)

// scanDocument cuts the records out of one JSON document and gives them to p: the
// conversations of a ChatGPT export (a list of objects, one object, objects one
// after the other, or a list under "conversations"), or the session and the items
// of the oldest Codex rollouts. It streams: apart from the record at hand its
// memory is constant. Damage costs the record it stands in; behind it the scan
// looks for the next conversation. A document is only ever read from its beginning.
func scanDocument(r io.Reader, f File, at Position, p Parser, emit func(*Record, *Entry) error) (Position, error) {
	if at != (Position{}) {
		return at, ErrRestart
	}
	first := buffers.Get().(*[firstBuffer]byte)
	defer buffers.Put(first)
	s := &docScan{
		r: r, parser: p, emit: emit,
		buf:   first[:],
		limit: evidence.MaxConversation,
		codex: f.Origin == evidence.Codex,
	}
	if s.codex {
		s.limit = evidence.MaxRecordBytes
	}
	err := s.document()
	if err == errStop {
		err = nil
	}
	if err == nil {
		err = s.err
	}
	return Position{Offset: s.pos(), Line: s.lineAt()}, err
}

const (
	docDepth = 10000    // nesting, as the JSON decoder bounds it
	docAgain = 64 << 20 // bytes that may be scanned again behind damage, beside four times those read
)

// docScan is the state of one scan. Every byte leaves the buffer through take.
type docScan struct {
	r      io.Reader
	parser Parser
	emit   func(*Record, *Entry) error
	limit  int
	codex  bool

	buf     []byte // buf[i:n] is unread
	i, n    int
	off     int64 // of buf[0] in the file
	lines   int64 // line breaks before buf[counted]
	counted int
	eof     bool
	err     error // of the reader, not io.EOF

	keep   bool // bytes taken go to rec
	over   bool // rec would have grown beyond the limit
	rec    []byte
	start  int64 // of rec in the file
	line   int64
	stack  []uint64 // bit per open bracket: 1 for an object
	anchor []byte   // first member name of the first conversation
	again  int64    // bytes scanned a second time
}

var (
	errBroken = errors.New("broken")           // the bytes cannot be JSON
	errEnd    = errors.New("end in mid-value") // the document ends too early
	errStop   = errors.New("end")              // nothing is left to read
)

func (s *docScan) pos() int64 { return s.off + int64(s.i) }

// lineAt counts the line breaks before the present place.
func (s *docScan) lineAt() int64 {
	if s.counted < s.i {
		s.lines += int64(bytes.Count(s.buf[s.counted:s.i], []byte{'\n'}))
		s.counted = s.i
	}
	return s.lines
}

// fill makes sure of an unread byte.
func (s *docScan) fill() bool {
	if s.i < s.n {
		return true
	}
	if s.eof {
		return false
	}
	s.lineAt()
	s.off += int64(s.n)
	s.i, s.n, s.counted = 0, 0, 0
	if len(s.buf) != firstBuffer {
		s.buf = make([]byte, firstBuffer) // the old one was what damage gave back
	}
	for range 100 {
		n, err := s.r.Read(s.buf)
		s.n = n
		if err != nil {
			s.eof = true
			if err != io.EOF {
				s.err = err
			}
		}
		if n > 0 || s.eof {
			return n > 0
		}
	}
	s.eof, s.err = true, io.ErrNoProgress
	return false
}

// take consumes the buffer up to j.
func (s *docScan) take(j int) {
	if s.keep {
		if len(s.rec)+j-s.i > s.limit {
			s.keep, s.over = false, true
			s.rec = nil
		} else {
			s.rec = append(s.rec, s.buf[s.i:j]...)
		}
	}
	s.i = j
}

// next passes over white space and gives the byte behind it, unread.
func (s *docScan) next() (byte, error) {
	for s.fill() {
		j := s.i
		for j < s.n && (s.buf[j] == ' ' || s.buf[j] == '\n' || s.buf[j] == '\r' || s.buf[j] == '\t') {
			j++
		}
		s.take(j)
		if j < s.n {
			return s.buf[j], nil
		}
	}
	return 0, errStop
}

// docClass tells bytes outside of strings apart: 0 plain, 1 a string begins,
// 2 opens, 3 closes, 4 cannot stand there.
var docClass = func() (c [256]byte) {
	for i := range c {
		c[i] = 4
	}
	for _, b := range " \t\r\n,:0123456789+-.eEtrufalsn" {
		c[b] = 0
	}
	c['"'], c['{'], c['['], c['}'], c[']'] = 1, 2, 2, 3, 3
	return c
}()

// value consumes one whole value that begins at the present byte.
func (s *docScan) value() error {
	depth, inString, escaped := 0, false, false
	s.stack = s.stack[:0]
	for {
		if !s.fill() {
			return errEnd
		}
		b := s.buf[:s.n]
		j := s.i
		if escaped {
			escaped = false
			j++
		}
		for j < len(b) {
			if inString {
				j = stringStop(b, j)
				if j >= len(b) {
					break
				}
				switch b[j] {
				case '"':
					inString = false
					j++
					if depth == 0 {
						s.take(j)
						return nil
					}
				case '\\':
					j += 2
				default: // a raw control character: the string lost its end
					s.take(j)
					return errBroken
				}
				continue
			}
			c := b[j]
			switch docClass[c] {
			case 0:
				if depth == 0 {
					return s.scalar()
				}
				j++
			case 1:
				inString = true
				j++
			case 2:
				if depth == docDepth {
					s.take(j)
					return errBroken
				}
				if depth>>6 == len(s.stack) {
					s.stack = append(s.stack, 0)
				}
				if bit := uint64(1) << (depth & 63); c == '{' {
					s.stack[depth>>6] |= bit
				} else {
					s.stack[depth>>6] &^= bit
				}
				depth++
				j++
			case 3:
				depth--
				if depth < 0 || s.stack[depth>>6]>>(depth&63)&1 == 1 != (c == '}') {
					s.take(j)
					return errBroken
				}
				j++
				if depth == 0 {
					s.take(j)
					return nil
				}
			default:
				s.take(j)
				return errBroken
			}
		}
		if j > len(b) {
			j, escaped = len(b), true
		}
		s.take(j)
	}
}

// scalar consumes a number or literal.
func (s *docScan) scalar() error {
	for s.fill() {
		j := s.i
		for j < s.n {
			switch c := s.buf[j]; {
			case c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t' || docClass[c] == 3:
				s.take(j)
				return nil
			case docClass[c] != 0:
				s.take(j)
				return errBroken
			}
			j++
		}
		s.take(j)
	}
	return nil
}

// stringStop finds the next quote, backslash or control character, eight bytes at
// a time.
func stringStop(b []byte, j int) int {
	for ; j+8 <= len(b); j += 8 {
		x := binary.LittleEndian.Uint64(b[j:])
		quote, slash := x^ones*'"', x^ones*'\\'
		if m := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*0x20)&^x) & tops; m != 0 {
			// A borrow can only mark bytes above a true hit, so the lowest is true.
			return j + bits.TrailingZeros64(m)>>3
		}
	}
	for ; j < len(b); j++ {
		if c := b[j]; c == '"' || c == '\\' || c < 0x20 {
			return j
		}
	}
	return j
}

// begin starts a record at the present byte.
func (s *docScan) begin() {
	s.start, s.line = s.pos(), s.lineAt()+1
	s.rec, s.keep, s.over = s.rec[:0], true, false
}

// end hands the record over.
func (s *docScan) end() error {
	s.keep = false
	if s.over {
		s.parser.Damaged(s.line, s.start, s.pos()-s.start, true)
		return nil
	}
	return s.parser.Record(&Record{
		Line: s.line, Start: s.start, End: s.start + int64(len(s.rec)), Bytes: s.rec, Digest: sha256.Sum256(s.rec),
	}, s.emit)
}

// document reads the whole of it.
func (s *docScan) document() error {
	if s.fill() {
		for s.n < 4 && !s.eof { // a mark may come in pieces
			n, err := s.r.Read(s.buf[s.n:])
			s.n += n
			if err != nil {
				s.eof = true
				if err != io.EOF {
					s.err = err
				}
			}
		}
		switch b := s.buf[:s.n]; {
		case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
			s.take(3)
		case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")):
			return &ErrUnsupported{"UTF-16 text; the export is UTF-8"}
		case bytes.HasPrefix(b, []byte("PK\x03\x04")):
			return &ErrUnsupported{"a ZIP archive; unpack it first"}
		}
	}
	c, err := s.next()
	if err != nil {
		if s.err != nil {
			return s.err
		}
		return &ErrUnsupported{"the file is empty"}
	}
	switch {
	case c == '[' && !s.codex:
		s.take(s.i + 1)
		if err := s.list(true); err != nil {
			return err
		}
	case c == '{':
		for c == '{' {
			if err := s.object(); err != nil {
				return err
			}
			if c, err = s.next(); err != nil || s.codex {
				break
			}
		}
	case c == '<':
		return &ErrUnsupported{"an HTML page, not JSON"}
	case c == '[':
		return &ErrUnsupported{"a list; a rollout document is one object"}
	case c == '"':
		return &ErrUnsupported{"a string, not conversations"}
	case docClass[c] == 0:
		return &ErrUnsupported{"a single value, not conversations"}
	default:
		return &ErrUnsupported{"not JSON"}
	}
	if _, err := s.next(); err == nil {
		s.rest(s.pos(), s.lineAt()+1)
	}
	return nil
}

// rest counts everything up to the end of the file as one damage.
func (s *docScan) rest(start, line int64) {
	s.keep = false
	for s.fill() {
		s.take(s.n)
	}
	if s.err == nil {
		s.parser.Damaged(line, start, s.pos()-start, false)
	}
}

// list reads a list of records behind its bracket. first says that it is the whole
// document, whose elements tell whether it is of a known kind.
func (s *docScan) list(first bool) error {
	some, comma := false, false
	var commaAt, commaLine int64
	lost := false // behind damage, until a conversation is found again
	for {
		c, err := s.next()
		if err != nil {
			if s.err == nil {
				s.parser.Damaged(s.lineAt()+1, s.pos(), 0, false)
			}
			return errStop
		}
		switch {
		case c == ']' && !lost:
			s.take(s.i + 1)
			if comma {
				s.parser.Damaged(commaLine, commaAt, 1, false)
			}
			return nil
		case c == ',' && !comma && (some || lost):
			comma, commaAt, commaLine = true, s.pos(), s.lineAt()+1
			s.take(s.i + 1)
			continue
		case c != '{':
			if lost {
				if err := s.seek(s.pos(), s.lineAt()+1, nil); err != nil {
					return err
				}
				continue
			}
			start, line := s.pos(), s.lineAt()+1
			if c != ',' && s.value() == nil && s.pos() > start {
				if first && !some {
					return &ErrUnsupported{"a list, but not of conversations"}
				}
				s.parser.Damaged(line, start, s.pos()-start, false)
				some, comma = true, false
				continue
			}
			if s.anchor == nil {
				s.rest(start, line)
				return errStop
			}
			lost = true
			if err := s.seek(start, line, nil); err != nil {
				return err
			}
			continue
		}
		if some && !comma && !lost {
			s.parser.Damaged(s.lineAt()+1, s.pos(), 0, false) // a comma is missing
		}
		s.begin()
		err = s.value()
		if err == nil {
			some, comma = true, false
			if lost && !s.over && !s.whole() {
				s.keep = false
				continue // part of the damaged one
			}
			lost = false
			if s.anchor == nil && !s.over {
				s.anchor = firstName(s.rec)
			}
			if err := s.end(); err != nil {
				return err
			}
			continue
		}
		if s.err != nil {
			return s.err
		}
		if s.anchor == nil && !s.over {
			s.anchor = firstName(s.rec)
		}
		s.keep = false
		if s.anchor == nil {
			s.rest(s.start, s.line)
			return errStop
		}
		lost, some = true, true
		given := s.rec // nothing when it was too long to be kept
		s.rec = nil
		if err := s.seek(s.start, s.line, given); err != nil {
			return err
		}
	}
}

// whole reports whether what was cut out behind damage is a record, and not an
// object from within the damaged one.
func (s *docScan) whole() bool {
	if !s.codex {
		return bytes.Contains(s.rec, []byte(`"mapping"`))
	}
	for _, name := range []string{`"role"`, `"call_id"`, `"summary"`, `"action"`} {
		if bytes.Contains(s.rec, []byte(name)) {
			return true
		}
	}
	return false
}

// firstName gives an object's first member name with its quotes.
func firstName(obj []byte) []byte {
	b := bytes.TrimLeft(obj[1:], " \t\r\n")
	if len(b) < 2 || b[0] != '"' {
		return nil
	}
	end := stringStop(b, 1)
	if end >= len(b) || b[end] != '"' || end > 64 {
		return nil
	}
	return bytes.Clone(b[:end+1])
}

// seek goes to where the next conversation seems to begin and counts what it
// passes over as one damage. given are bytes already taken that are looked through
// first; they begin at start.
func (s *docScan) seek(start, line int64, given []byte) error {
	s.lineAt()
	if len(given) > 0 {
		s.again += int64(len(given))
		if s.again > 4*s.pos()+docAgain {
			s.rest(start, line)
			return errStop
		}
		s.buf = append(given, s.buf[s.i:s.n]...)
		s.off, s.lines = start, line-1
		s.i, s.n, s.counted = 0, len(s.buf), 0
	}
	from := s.i + 1
	for {
		for from < s.n {
			k := bytes.Index(s.buf[from:s.n], s.anchor)
			if k < 0 {
				break
			}
			k += from
			from = k + 1
			b := bytes.TrimRight(s.buf[s.i:k], " \t\r\n")
			if len(b) < 2 || b[len(b)-1] != '{' {
				continue
			}
			brace := len(b) - 1
			if b = bytes.TrimRight(b[:brace], " \t\r\n"); len(b) == 0 || b[len(b)-1] != ',' && b[len(b)-1] != '[' {
				continue
			}
			s.take(s.i + brace)
			s.parser.Damaged(line, start, s.pos()-start, false)
			return nil
		}
		// The last bytes may hold the beginning of a match.
		const tail = 256
		have := min(tail, s.n-s.i)
		hold := bytes.Clone(s.buf[s.n-have : s.n])
		s.take(s.n)
		if !s.fill() {
			if s.err != nil {
				return s.err
			}
			s.parser.Damaged(line, start, s.pos()-start, false)
			return errStop
		}
		s.off -= int64(have)
		s.lines -= int64(bytes.Count(hold, []byte{'\n'}))
		s.buf = append(hold, s.buf[:s.n]...)
		s.n += have
		from = 1
	}
}

// object reads an object: one conversation, a wrapper around a list of them, or a
// rollout document.
func (s *docScan) object() error {
	wrapper, records := false, false
	if !s.codex {
		s.begin()
	} else {
		s.start, s.line = s.pos(), s.lineAt()+1
	}
	s.take(s.i + 1)
	fail := func(err error) error {
		if s.err != nil {
			return s.err
		}
		if wrapper || records {
			s.rest(s.pos(), s.lineAt()+1)
		} else {
			s.rest(s.start, s.line)
		}
		return errStop
	}
	for {
		c, err := s.next()
		if err != nil {
			return fail(err)
		}
		switch c {
		case '}':
			s.take(s.i + 1)
			switch {
			case s.codex && !records:
				return &ErrUnsupported{"an object without session and items"}
			case s.codex, wrapper:
				return nil
			}
			return s.end()
		case ',':
			s.take(s.i + 1)
			continue
		case '"':
		default:
			return fail(errBroken)
		}
		name, err := s.name()
		if err != nil {
			return fail(err)
		}
		if c, err = s.next(); err != nil || c != ':' {
			return fail(errBroken)
		}
		s.take(s.i + 1)
		if c, err = s.next(); err != nil {
			return fail(err)
		}
		switch {
		case !s.codex && c == '[' && name == "conversations", s.codex && c == '[' && name == "items":
			wrapper, records = true, true
			s.keep = false
			s.take(s.i + 1)
			if err := s.list(false); err != nil {
				return err
			}
		case s.codex && c == '{' && name == "session":
			records = true
			s.begin()
			if err := s.value(); err != nil {
				s.keep = false
				return fail(err)
			}
			if err := s.end(); err != nil {
				return err
			}
		default:
			if err := s.value(); err != nil {
				return fail(err)
			}
		}
	}
}

// name consumes a member name; a long one is nobody's.
func (s *docScan) name() (string, error) {
	if s.n-s.i > 66 { // the usual case: whole in the buffer
		if j := stringStop(s.buf[:s.n], s.i+1); j < s.n && s.buf[j] == '"' && j-s.i <= 64 {
			v := string(s.buf[s.i+1 : j])
			s.take(j + 1)
			return v, nil
		}
		return "", s.value()
	}
	var out []byte
	s.take(s.i + 1)
	for s.fill() {
		c := s.buf[s.i]
		s.take(s.i + 1)
		switch {
		case c == '"':
			return string(out), nil
		case c < 0x20:
			return "", errBroken
		case c == '\\':
			if !s.fill() {
				return "", errEnd
			}
			s.take(s.i + 1)
			out = append(out, 0) // no name we know
		case len(out) < 64:
			out = append(out, c)
		}
	}
	return "", errEnd
}
