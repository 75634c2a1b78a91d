package transcript

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
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

func (v value) isString() bool { return len(v) >= 2 && v[0] == '"' }
func (v value) isObject() bool { return len(v) >= 2 && v[0] == '{' }
func (v value) isArray() bool  { return len(v) >= 2 && v[0] == '[' }
func (v value) isNull() bool   { return len(v) == 0 || v[0] == 'n' }
func (v value) isTrue() bool   { return len(v) > 0 && v[0] == 't' }

// is reports whether v is the string s, written without escapes.
func (v value) is(s string) bool {
	return v.isString() && string(v[1:len(v)-1]) == s
}
