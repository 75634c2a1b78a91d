package transcript

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/mooncite/internal/evidence"
)

// How JSON is read here, in every origin: a record is checked once, as a whole
// ([checker]: jsontext, behind a quick look that knows most good records for good);
// after that its members are found by skipping over what is not wanted, at the speed of
// a byte search, and only wanted strings are unescaped. Nothing below trusts that the
// check was made: on bytes that are not JSON the walk ends early, it never panics.

// value is the raw text of one JSON value without surrounding white space.
type value []byte

// A checker tells whole JSON values from damaged ones. It is reused over many.
type checker struct {
	dec *jsontext.Decoder
	buf bytes.Buffer
}

var checkOptions = []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}

// value reads the one JSON value b begins with. It returns the length up to the
// value's end; when b does not begin with a whole value, the offset at which that
// showed.
func (c *checker) value(b []byte) (n int, ok bool) {
	if n = quick(b); n >= 0 {
		return n, true
	}
	return c.slow(b)
}

func (c *checker) slow(b []byte) (n int, ok bool) {
	c.buf = *bytes.NewBuffer(b)
	if c.dec == nil {
		c.dec = jsontext.NewDecoder(&c.buf, checkOptions...)
	} else {
		c.dec.Reset(&c.buf, checkOptions...)
	}
	_, err := c.dec.ReadValue()
	if err == nil {
		return int(c.dec.InputOffset()), true
	}
	if e := (*jsontext.SyntacticError)(nil); !errors.Is(err, io.ErrUnexpectedEOF) && errors.As(err, &e) && e.ByteOffset >= 0 && e.ByteOffset <= int64(len(b)) {
		return int(e.ByteOffset), false
	}
	return len(b), false
}

// object returns the record's object, checked unless [Scan] did that already.
func (r *Record) object() (value, bool) {
	v := trim(r.Bytes)
	if len(v) < 2 || v[0] != '{' {
		return nil, false
	}
	if r.checked {
		return v, true
	}
	var c checker
	n, ok := c.value(v)
	return v, ok && n == len(v)
}

// inside reads the object or list that stands as JSON text in a string; false: there is
// none. The value may not be kept.
func (v value) inside(do func(inner value)) bool {
	if !v.isString() {
		return false
	}
	s := v[1 : len(v)-1]
	for len(s) > 0 && isSpace(s[0]) || len(s) > 1 && s[0] == '\\' && (s[1] == 'n' || s[1] == 'r' || s[1] == 't') {
		if s[0] == '\\' {
			s = s[1:]
		}
		s = s[1:]
	}
	if len(s) == 0 || s[0] != '{' && s[0] != '[' {
		return false // most are plain text
	}
	p := newScratch(len(s))
	defer p.free()
	p.b = unescape(p.b, s)
	inner := value(trim(p.b))
	var c checker
	if n, ok := c.value(inner); !ok || n != len(inner) {
		return false
	}
	do(inner)
	return true
}

// A scratch is where a string with escapes is put together: the text made of it is of
// the size it has to be, and nothing else is allocated.
type scratch struct{ b []byte }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// newScratch gives an empty one with room for n bytes; free gives it back.
func newScratch(n int) *scratch {
	p := scratches.Get().(*scratch)
	p.b = slices.Grow(p.b[:0], n)
	return p
}

func (p *scratch) free() {
	if cap(p.b) <= 1<<20 { // a large one is rarely wanted again
		scratches.Put(p)
	}
}

func trim(b []byte) []byte {
	i, j := space(b, 0), len(b)
	for j > i && isSpace(b[j-1]) {
		j--
	}
	return b[i:j]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func space(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

// stringEnd returns the offset behind the string that begins at i, or -1.
func stringEnd(b []byte, i int) int {
	j := i + 1
	for stop := j + 32; j < stop && j+8 <= len(b); { // names and short values, eight bytes at once
		x := binary.LittleEndian.Uint64(b[j:])
		quote, slash := x^ones*'"', x^ones*'\\'
		m := ((quote-ones)&^quote | (slash-ones)&^slash) & tops
		if m == 0 {
			j += 8
			continue
		}
		j += bits.TrailingZeros64(m) >> 3
		if b[j] == '"' {
			return j + 1
		}
		j += 2
	}
	if j >= len(b) {
		return -1
	}
	for from := j; ; {
		k := bytes.IndexByte(b[j:], '"')
		if k < 0 {
			return -1
		}
		j += k
		n := 0
		for j-1-n >= from && b[j-1-n] == '\\' {
			n++
		}
		j++
		if n&1 == 0 {
			return j
		}
	}
}

// valueEnd returns the offset behind the value that begins at i, or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = stringEnd(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	for j := i; j < len(b); j++ {
		switch b[j] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			if j == i {
				return -1
			}
			return j
		}
	}
	return len(b)
}

// members walks an object: name, value. The name may be used only until the next
// one; compare it with string(name). Other values have no members.
func (v value) members() iter.Seq2[[]byte, value] {
	return func(yield func([]byte, value) bool) {
		if len(v) == 0 || v[0] != '{' {
			return
		}
		for i := space(v, 1); i < len(v) && v[i] == '"'; {
			e := stringEnd(v, i)
			if e < 0 {
				return
			}
			name := []byte(v[i+1 : e-1])
			if bytes.IndexByte(name, '\\') >= 0 {
				name = unescape(nil, name)
			}
			if i = space(v, e); i >= len(v) || v[i] != ':' {
				return
			}
			i = space(v, i+1)
			if e = valueEnd(v, i); e < 0 {
				return
			}
			if !yield(name, v[i:e:e]) {
				return
			}
			if i = space(v, e); i >= len(v) || v[i] != ',' {
				return
			}
			i = space(v, i+1)
		}
	}
}

// elements walks an array. Other values have no elements.
func (v value) elements() iter.Seq[value] {
	return func(yield func(value) bool) {
		if len(v) == 0 || v[0] != '[' {
			return
		}
		for i := space(v, 1); i < len(v) && v[i] != ']'; {
			e := valueEnd(v, i)
			if e < 0 || !yield(v[i:e:e]) {
				return
			}
			if i = space(v, e); i >= len(v) || v[i] != ',' {
				return
			}
			i = space(v, i+1)
		}
	}
}

// member returns the last member of that name, as most readers do, or nil.
func (v value) member(name string) (found value) {
	for n, m := range v.members() {
		if string(n) == name {
			found = m
		}
	}
	return found
}

// strings gives the strings inside v at any depth, names of members not among them, as
// long as add says true; it reports whether it always did.
func (v value) strings(add func(string) bool) bool {
	for i := 0; i < len(v); {
		k := bytes.IndexByte(v[i:], '"')
		if k < 0 {
			break
		}
		i += k
		e := stringEnd(v, i)
		if e < 0 {
			break
		}
		s := v[i:e]
		if i = space(v, e); i < len(v) && v[i] == ':' {
			continue
		}
		if !add(s.str()) {
			return false
		}
	}
	return true
}

func (v value) isString() bool { return len(v) >= 2 && v[0] == '"' }
func (v value) isObject() bool { return len(v) >= 2 && v[0] == '{' }
func (v value) isArray() bool  { return len(v) >= 2 && v[0] == '[' }
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }
func (v value) isTrue() bool   { return len(v) > 0 && v[0] == 't' }

// str returns the string's text, "" for any other value.
func (v value) str() string {
	if !v.isString() {
		return ""
	}
	s := v[1 : len(v)-1]
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s)
	}
	p := newScratch(len(s))
	defer p.free()
	p.b = unescape(p.b, s)
	return string(p.b)
}

// is reports whether v is the string s, written without escapes.
func (v value) is(s string) bool {
	return v.isString() && string(v[1:len(v)-1]) == s
}

// unescape appends the text that the inside of a JSON string stands for. Bytes that
// are not UTF-8, and surrogates without their other half, become U+FFFD.
func unescape(to, s []byte) []byte {
	valid := utf8.Valid(s)
	for {
		k := bytes.IndexByte(s, '\\')
		part := s
		if k >= 0 {
			part = s[:k]
		}
		if valid {
			to = append(to, part...)
		} else {
			for len(part) > 0 {
				r, n := utf8.DecodeRune(part)
				to = utf8.AppendRune(to, r)
				part = part[n:]
			}
		}
		if k < 0 {
			return to
		}
		if s = s[k:]; len(s) < 2 {
			return utf8.AppendRune(to, utf8.RuneError)
		}
		n := 2
		switch c := s[1]; c {
		case 'n':
			to = append(to, '\n')
		case 't':
			to = append(to, '\t')
		case 'r':
			to = append(to, '\r')
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'u':
			r, ok := hex4(s)
			n = min(6, len(s))
			if ok && r >= 0xd800 && r < 0xdc00 {
				if low, ok := hex4(s[6:]); ok && low >= 0xdc00 && low < 0xe000 {
					r = (r-0xd800)<<10 + low - 0xdc00 + 0x10000
					n = 12
				}
			}
			if !ok {
				r = utf8.RuneError
			}
			to = utf8.AppendRune(to, r) // a lone surrogate becomes U+FFFD here
		case '"', '\\', '/':
			to = append(to, c)
		default: // not JSON
			to = utf8.AppendRune(to, utf8.RuneError)
			if c >= utf8.RuneSelf {
				n = 1
			}
		}
		s = s[n:]
	}
}

// hex4 reads \uXXXX.
func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// toolText gives the text of a tool's argument or result to add; of a very large one
// the parts that headTail takes, without making a string of all of it. Base64 gives
// nothing.
func toolText(v value, add func(string)) {
	if !v.isString() || isBase64(v[1:len(v)-1]) {
		return
	}
	if len(v)-2 <= evidence.MaxToolBytes {
		add(v.str())
		return
	}
	b := unescape(make([]byte, 0, len(v)-2), v[1:len(v)-1])
	const ends = evidence.MaxToolBytes / 2
	const middle = evidence.MaxHiddenBytes + 2*utf8.UTFMax // a little too much: headTail sees that more was there
	if len(b) > 2*ends+middle {
		h, t := ends+middle, len(b)-ends
		for h > 0 && !utf8.RuneStart(b[h]) {
			h--
		}
		for t < len(b) && !utf8.RuneStart(b[t]) {
			t++
		}
		b = append(b[:h], b[t:]...)
	}
	add(string(b))
}

// isBase64 reports whether the inside of a JSON string is encoded bytes rather
// than text: long, and without anything but base64 digits where it begins.
func isBase64(s []byte) bool {
	if bytes.HasPrefix(s, []byte("data:")) {
		k := bytes.IndexByte(s[:min(len(s), 128)], ',')
		return k > 0 && bytes.Contains(s[:k], []byte(";base64"))
	}
	const enough = 512
	if len(s) < enough {
		return false
	}
	for i := 0; i < enough; i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '=', c == '-', c == '_':
		case c == '\\' && i+1 < enough && (s[i+1] == 'n' || s[i+1] == 'r' || s[i+1] == '/') && i >= 60:
			i++ // wrapped lines of an encoder
		default:
			return false
		}
	}
	return true
}

// sealed reports whether a member holds what is never taken: hidden thinking,
// signatures, encrypted or encoded bytes.
func sealed(name []byte) bool {
	switch string(name) {
	case "thinking", "thinkingSignature", "signature", "encrypted_content", "redacted_thinking", "data", "blob", "base64":
		return true
	}
	return false
}

// structural reports whether a member only says what its neighbours are.
func structural(name []byte) bool {
	switch string(name) {
	case "type", "id", "role", "name", "toolName", "toolCallId", "mimeType", "customType":
		return true
	}
	return sealed(name)
}

// texts gives the strings inside v in their order, at most *left of them, not from
// members that skip names, and not from deeper than people nest things. *left is
// negative in the end when there were more.
func texts(v value, left *int, skip func([]byte) bool, add func(value)) {
	textsAt(v, left, 16, skip, add)
}

func textsAt(v value, left *int, depth int, skip func([]byte) bool, add func(value)) {
	switch {
	case *left < 0 || len(v) <= 2: // an empty string, list or object among them
	case v[0] == '"':
		*left--
		if *left >= 0 {
			add(v)
		}
	case depth == 0:
		if v[0] == '{' || v[0] == '[' {
			*left = -1
		}
	case v[0] == '{':
		for name, m := range v.members() {
			if *left < 0 {
				return
			}
			if !skip(name) {
				textsAt(m, left, depth-1, skip, add)
			}
		}
	case v[0] == '[':
		for e := range v.elements() {
			if *left < 0 {
				return
			}
			textsAt(e, left, depth-1, skip, add)
		}
	}
}
