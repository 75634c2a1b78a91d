package transcript

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// A rawWalk reads JSON by members, giving values as raw parts of its source. It
// never builds a tree, refuses nesting beyond the decoder's bound, and remembers
// the first fault so that callers look once, at the end.
type rawWalk struct {
	src []byte
	buf bytes.Buffer
	dec *jsontext.Decoder
	bad bool
}

var (
	allowDuplicates = jsontext.AllowDuplicateNames(true)
	allowBadUTF8    = jsontext.AllowInvalidUTF8(true)
	rawWalks        = sync.Pool{New: func() any {
		w := new(rawWalk)
		w.dec = jsontext.NewDecoder(&w.buf, allowDuplicates, allowBadUTF8)
		return w
	}}
)

// newRawWalk gives a walk over src; free returns it.
func newRawWalk(src []byte) *rawWalk {
	w := rawWalks.Get().(*rawWalk)
	w.src, w.bad = src, false
	w.buf = *bytes.NewBuffer(src)
	w.dec.Reset(&w.buf, allowDuplicates, allowBadUTF8)
	return w
}

func (w *rawWalk) free() {
	w.src = nil
	w.buf = bytes.Buffer{}
	w.dec.Reset(&w.buf, allowDuplicates, allowBadUTF8)
	rawWalks.Put(w)
}

// enter steps into the object or array that comes next, if one does.
func (w *rawWalk) enter(kind jsontext.Kind) bool {
	if w.bad || w.dec.PeekKind() != kind {
		return false
	}
	if _, err := w.dec.ReadToken(); err != nil {
		w.bad = true
		return false
	}
	return true
}

// more reports whether another member or element comes; it steps out when not.
func (w *rawWalk) more() bool {
	if w.bad {
		return false
	}
	switch w.dec.PeekKind() {
	case '}', ']':
		if _, err := w.dec.ReadToken(); err != nil {
			w.bad = true
		}
		return false
	case 0:
		w.bad = true
		return false
	}
	return true
}

// value reads the next value or member name whole.
func (w *rawWalk) value() []byte {
	v, err := w.dec.ReadValue()
	if err != nil {
		w.bad = true
		return nil
	}
	end := int(w.dec.InputOffset())
	return w.src[end-len(v) : end : end]
}

// offset is where in the source the walk stands.
func (w *rawWalk) offset() int { return int(w.dec.InputOffset()) }

// done reports whether the whole source was good and nothing but white space is left.
func (w *rawWalk) done() bool {
	return !w.bad && len(bytes.TrimLeft(w.src[w.offset():], " \t\r\n")) == 0
}

// plainName gives a member name as it would be written without escapes, quotes
// included.
func plainName(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return append(append([]byte{'"'}, unquote(raw)...), '"')
}

// isString and isObject look at a raw value's kind.
func isString(raw []byte) bool { return len(raw) > 1 && raw[0] == '"' }
func isObject(raw []byte) bool { return len(raw) > 1 && raw[0] == '{' }
func isArray(raw []byte) bool  { return len(raw) > 1 && raw[0] == '[' }

// unquote gives the text of a raw JSON string that a decoder already accepted.
// Anything else gives "". Bad UTF-8 and lone surrogates become U+FFFD.
func unquote(raw []byte) string {
	if !isString(raw) {
		return ""
	}
	in := raw[1 : len(raw)-1]
	if !utf8.Valid(in) {
		out, _ := jsontext.AppendUnquote(nil, raw)
		return string(bytes.ToValidUTF8(out, []byte("\uFFFD")))
	}
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return string(in)
	}
	var out strings.Builder
	out.Grow(len(in))
	for i >= 0 && i+1 < len(in) {
		out.Write(in[:i])
		c := in[i+1]
		in = in[i+2:]
		switch c {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'u':
			r := rawHex4(in)
			in = in[min(4, len(in)):]
			if r >= 0xd800 && r < 0xdc00 && len(in) >= 6 && in[0] == '\\' && in[1] == 'u' {
				if low := rawHex4(in[2:]); low >= 0xdc00 && low < 0xe000 {
					r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
					in = in[6:]
				}
			}
			out.WriteRune(r) // a lone surrogate is written as U+FFFD
		default:
			out.WriteByte(c)
		}
		i = bytes.IndexByte(in, '\\')
	}
	out.Write(in)
	return out.String()
}

func rawHex4(b []byte) rune {
	if len(b) < 4 {
		return utf8.RuneError
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return utf8.RuneError
		}
		r = r<<4 | rune(c)
	}
	return r
}

// stringsIn gives the string values in a raw JSON value in order, at most limit of
// them; member names are not values. ok is false when the value is not JSON.
func stringsIn(raw []byte, limit int, keep func(string) bool) (out []string, more, ok bool) {
	w := newRawWalk(raw)
	defer w.free()
	for {
		kind := w.dec.PeekKind()
		if kind != '"' {
			if _, err := w.dec.ReadToken(); err != nil {
				break
			}
		} else {
			v := w.value()
			if w.bad {
				break
			}
			in, n := w.dec.StackIndex(w.dec.StackDepth())
			if (in != '{' || n%2 == 0) && !more {
				if s := unquote(v); keep(s) {
					if more = len(out) == limit; !more {
						out = append(out, s)
					}
				}
			}
		}
		if w.dec.StackDepth() == 0 {
			return out, more, w.done()
		}
	}
	return out, more, false
}

// isPacked reports whether a text is no text but packed bytes: a data URL or a
// long run of base64.
func isPacked(s string) bool {
	if len(s) > 5 && s[:5] == "data:" {
		head := s[:min(len(s), 128)]
		return bytes.Contains([]byte(head), []byte(";base64,"))
	}
	const run = 512
	if len(s) < run {
		return false
	}
	same := true
	for i := range run {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' {
			return false
		}
		same = same && c == s[0]
	}
	return !same
}
