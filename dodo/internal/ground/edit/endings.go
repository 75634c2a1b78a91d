package edit

import "bytes"

var crlf = []byte("\r\n")

// A surface is a text as find texts see it: CRLF shows as LF.
type surface struct {
	text []byte
	crs  []int // where in text the LF stand that have a CR in the file, in order
}

// fold makes the surface of a text. A text without CRLF is its own.
func fold(raw []byte) surface {
	n := bytes.Count(raw, crlf)
	if n == 0 {
		return surface{text: raw}
	}
	s := surface{text: make([]byte, 0, len(raw)-n), crs: make([]int, 0, n)}
	for {
		i := bytes.Index(raw, crlf)
		if i < 0 {
			s.text = append(s.text, raw...)
			return s
		}
		s.text = append(s.text, raw[:i]...)
		s.crs = append(s.crs, len(s.text))
		s.text = append(s.text, '\n')
		raw = raw[i+2:]
	}
}

// A layout says how the line breaks of a replacement end.
type layout struct {
	replace []byte
	breaks  []int // where its bare LF are
	found   int   // line breaks of the find text
	first   int   // line breaks at the beginning that both texts have
	last    int   // line breaks at the end that both texts have
}

// newLayout compares the texts of an edit. Where a line break stands in both, its own
// ending stays; CRLF in the replacement is meant as typed.
func newLayout(find, replace []byte) layout {
	l := layout{replace: replace, found: bytes.Count(find, crlf[1:])}
	for i, c := range replace {
		if c == '\n' && (i == 0 || replace[i-1] != '\r') {
			l.breaks = append(l.breaks, i)
		}
	}
	p := 0
	for p < len(find) && p < len(replace) && find[p] == replace[p] {
		if find[p] == '\n' {
			l.first++
		}
		p++
	}
	if bytes.IndexByte(replace, '\r') >= 0 {
		return l
	}
	for i, j := len(find)-1, len(replace)-1; i >= p && j >= p && find[i] == replace[j]; i, j = i-1, j-1 {
		if find[i] == '\n' {
			l.last++
		}
	}
	return l
}

// isCR reports whether line break j of the replacement gets a CR. has says which of the
// replaced line breaks had one; beside is asked when none was replaced near it.
func (l layout) isCR(j int, has func(int) bool, beside bool) bool {
	middle := l.found - l.first - l.last
	switch {
	case j < l.first:
		return has(j)
	case j >= len(l.breaks)-l.last:
		return has(l.found - (len(l.breaks) - j))
	case middle > 0:
		return has(l.first + min(j-l.first, middle-1))
	case l.first > 0:
		return has(l.first - 1)
	case l.last > 0:
		return has(l.found - l.last)
	}
	return beside
}
