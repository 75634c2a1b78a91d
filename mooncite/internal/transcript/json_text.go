package transcript

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"
)

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
