package search

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"
)

// longMatch is the length of a line times the size of the program from which on a line is
// matched in a way that can be stopped: below that it takes less than a second.
const longMatch = 16 << 20

// A matcher finds the lines of texts that match a pattern. It belongs to one goroutine.
type matcher struct {
	*pattern
	walk    *walker // nil when it is not worth it
	finders []finder
	data    []byte
}

func newMatcher(p *pattern) *matcher {
	m := &matcher{pattern: p, walk: newWalker(p.auto)}
	for i := range p.needles {
		m.finders = append(m.finders, finder{needle: &p.needles[i]})
	}
	return m
}

// reset begins with a text.
func (m *matcher) reset(data []byte) {
	m.data = data
	for i := range m.finders {
		m.finders[i].reset(data)
	}
}

// A line is a line that matches: its bytes without the line feed but with the CR before it, and where the match
// begins in it, or -1 when that was not needed to know that it does.
type line struct{ start, end, match int }

// next returns the first line that matches of those that begin at from or later, where
// from begins a line.
func (m *matcher) next(ctx context.Context, from int) (l line, ok bool) {
	for from < len(m.data) && ctx.Err() == nil {
		switch {
		case len(m.finders) > 0:
			place := len(m.data)
			for i := range m.finders {
				place = min(place, m.finders[i].find(from))
			}
			if place == len(m.data) {
				return line{}, false
			}
			l = m.around(from, place)
			if m.whole {
				l.match = place - l.start
				return l, true
			}
			if m.matches(ctx, l) {
				return l, true
			}
		case m.walk != nil && !m.walk.tired:
			place := m.walk.find(m.data, from)
			if m.walk.tired {
				continue
			}
			if place < 0 || place == len(m.data) && m.data[place-1] == '\n' {
				return line{}, false
			}
			l = m.around(from, place)
			if isASCII(m.held(l)) || m.locate(ctx, l) >= 0 {
				return l, true
			}
		default:
			l = m.around(from, from)
			if l.match = m.locate(ctx, l); l.match >= 0 {
				return l, true
			}
		}
		from = l.end + 1
	}
	return line{}, false
}

// around is the line that a place is on, or whose line feed it is.
func (m *matcher) around(from, place int) line {
	l := line{start: from, end: len(m.data), match: -1}
	if i := bytes.LastIndexByte(m.data[from:place], '\n'); i >= 0 {
		l.start = from + i + 1
	}
	if i := bytes.IndexByte(m.data[place:], '\n'); i >= 0 {
		l.end = place + i
	}
	return l
}

// held is what a pattern is held against: a line without its end, be it LF or CRLF.
func (m *matcher) held(l line) []byte {
	return bytes.TrimSuffix(m.data[l.start:l.end], []byte("\r"))
}

// matches reports whether a line matches.
func (m *matcher) matches(ctx context.Context, l line) bool {
	if m.walk != nil && !m.walk.tired {
		text := m.data[l.start:l.end]
		yes := m.walk.find(text, 0) >= 0
		if !m.walk.tired && (!yes || isASCII(text)) {
			return yes
		}
	}
	return m.locate(ctx, l) >= 0
}

// locate returns where the match begins in a line; -1 when there is none.
func (m *matcher) locate(ctx context.Context, l line) int {
	if l.match >= 0 {
		return l.match
	}
	text := m.held(l)
	var at []int
	if len(text)*len(m.auto.prog.Inst) < longMatch {
		at = m.re.FindIndex(text)
	} else {
		at = m.re.FindReaderIndex(&runes{ctx: ctx, text: text})
	}
	if at == nil {
		return -1
	}
	return at[0]
}

// runes reads a text and ends early when ctx is done.
type runes struct {
	ctx  context.Context
	text []byte
	at   int
}

func (r *runes) ReadRune() (rune, int, error) {
	if r.at == len(r.text) || r.at&1023 == 0 && r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	c, n := rune(r.text[r.at]), 1
	if c >= utf8.RuneSelf {
		c, n = utf8.DecodeRune(r.text[r.at:])
	}
	r.at += n
	return c, n, nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// column is a place in a line as clients count it: from 1, in units of UTF-16. A byte that
// is no text counts as one.
func column(text []byte, at int) int {
	n := 1
	for b := text[:at]; len(b) > 0; {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
		} else {
			r, size := utf8.DecodeRune(b)
			if r > 0xFFFF {
				n++
			}
			b = b[size:]
		}
		n++
	}
	return n
}
