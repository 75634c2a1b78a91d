package text

import (
	"bytes"
	"slices"
)

// lineEnd is the index behind the first line break of b, or -1. In UTF-16 b begins with a
// whole unit.
func (e Encoding) lineEnd(b []byte) int {
	if e.unit() == 1 {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return i + 1
		}
		return -1
	}
	for i := 0; ; {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return -1
		}
		i += n
		if u := i &^ 1; u+2 <= len(b) && e.unit16(b[u:]) == '\n' {
			return u + 2
		}
		i++
	}
}

// lineEnds counts the line breaks of b.
func (e Encoding) lineEnds(b []byte) int {
	if e.unit() == 1 {
		return bytes.Count(b, []byte{'\n'})
	}
	n := 0
	for i := 0; i+2 <= len(b); i += 2 {
		if e.unit16(b[i:]) == '\n' {
			n++
		}
	}
	return n
}

// lastLines are the places behind line breaks where the last lines of b begin, at most n,
// the last one first. The first line of b is not among them.
func (e Encoding) lastLines(b []byte, n int64) []int {
	var starts []int
	u := e.unit()
	for end := len(b) - u; int64(len(starts)) < n; {
		// A break before end begins a line that has at least one byte.
		i := bytes.LastIndexByte(b[:max(end, 0)], '\n')
		if i < 0 {
			break
		}
		if u == 2 {
			if i &^= 1; e.unit16(b[i:]) != '\n' {
				end = i
				continue
			}
		}
		starts = append(starts, i+u)
		end = i
	}
	return slices.Clip(starts)
}

// chars is how many bytes the first n characters of b take.
func (e Encoding) chars(b []byte, n int) int {
	i := 0
	for ; n > 0 && i < len(b); n-- {
		i += max(e.char(b[i:]), 1)
	}
	return i
}
