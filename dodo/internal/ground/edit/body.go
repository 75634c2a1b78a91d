package edit

import (
	"bytes"
	"strconv"
	"strings"
)

// hunk reads one hunk with its header.
func (p *parser) hunk(number int) (hunk, error) {
	h := hunk{number: number, line: p.n + 1}
	at, before, after, counted, ok := hunkHeader(string(p.peek(0)))
	if !ok {
		return h, p.invalid(p.n, "the header of the hunk cannot be read").WithHint("write @@ -LINE,COUNT +LINE,COUNT @@")
	}
	h.at = at
	p.n++
	start := p.n
	if counted {
		if p.body(&h, before, after) && !p.goesOn() {
			return h, p.checkHunk(&h)
		}
		p.n, h.lines, h.marked = start, nil, false
	}
	h.noted = true
	p.body(&h, -1, -1)
	if len(h.lines) == 0 {
		return h, p.invalid(h.line-1, "the hunk has no lines")
	}
	return h, p.checkHunk(&h)
}

// checkHunk holds that a hunk changes something, and that a line without a line break is
// the last of its side.
func (p *parser) checkHunk(h *hunk) error {
	changes := false
	var bare [2]bool
	for _, l := range h.lines {
		changes = changes || l.kind != ' '
		for side, other := range [2]byte{'+', '-'} {
			if l.kind == other {
				continue
			}
			if bare[side] {
				return p.invalid(h.line-1, "a line of the hunk that has no line break is not the last one")
			}
			bare[side] = l.bare
		}
	}
	if !changes {
		return p.invalid(h.line-1, "the hunk changes nothing")
	}
	return nil
}

// body reads lines of a hunk: as many as the counts say, or without counts those up to the
// next header. It reports whether there were as many.
func (p *parser) body(h *hunk, before, after int) bool {
	free := before < 0
	empty := 0 // how many of the last lines are empty
	for free || before > 0 || after > 0 {
		if p.n >= len(p.lines) {
			break
		}
		l := p.lines[p.n]
		if free && p.ends() {
			break
		}
		kind, text := byte(' '), l
		empty++
		switch {
		case len(bytes.TrimSuffix(l, []byte{'\r'})) == 0:
			// An empty line is one of context whose blank was lost.
		case l[0] == ' ' || l[0] == '-' || l[0] == '+':
			kind, text, empty = l[0], l[1:], 0
		case l[0] == '\\' && len(h.lines) > 0:
			h.lines[len(h.lines)-1].bare, h.marked, empty = true, true, 0
			p.n++
			continue
		default:
			return false
		}
		if kind != '+' {
			before--
		}
		if kind != '-' {
			after--
		}
		if !free && (before < 0 || after < 0) {
			return false
		}
		h.lines = append(h.lines, op{kind: kind, text: text})
		p.n++
	}
	if !free && (before > 0 || after > 0) {
		return false
	}
	// Empty lines at the end part the hunk from what follows.
	if free {
		h.lines, p.n = h.lines[:len(h.lines)-empty], p.n-empty
	}
	// The mark of a last line without its line break is not counted.
	if l := p.peek(0); len(l) > 0 && l[0] == '\\' && len(h.lines) > 0 {
		h.lines[len(h.lines)-1].bare, h.marked = true, true
		p.n++
	}
	return true
}

// ends reports whether the next line cannot be one of a hunk without counts.
func (p *parser) ends() bool {
	l := p.peek(0)
	if len(l) == 0 {
		return false
	}
	if p.atNames(0) && (p.n+2 >= len(p.lines) || bytes.HasPrefix(p.peek(2), []byte("@@"))) || p.signature() {
		return true
	}
	return strings.IndexByte(" +-\\", l[0]) < 0
}

// signature reports whether the next line begins the signature of a mailed patch.
func (p *parser) signature() bool {
	return string(p.peek(0)) == "-- " && p.n+3 >= len(p.lines)
}

// goesOn reports whether lines of a hunk follow though its counts are used up.
func (p *parser) goesOn() bool {
	k := 0
	for p.n+k < len(p.lines) && len(p.peek(k)) == 0 {
		k++
	}
	l := p.peek(k)
	if len(l) == 0 || p.atNames(k) || k == 0 && p.signature() || string(l) == "-- " {
		return false
	}
	return l[0] == '+' || l[0] == '-' || l[0] == ' '
}

// hunkHeader reads "@@ -l,n +l,n @@". Without numbers it is only a beginning.
func hunkHeader(s string) (at, before, after int, counted, ok bool) {
	rest, ok := strings.CutPrefix(s, "@@ -")
	if !ok {
		return 0, 0, 0, false, s == "@@" || strings.HasPrefix(s, "@@ ")
	}
	old, rest, ok1 := strings.Cut(rest, " +")
	now, _, ok2 := strings.Cut(rest, " @@")
	if !ok1 || !ok2 {
		return 0, 0, 0, false, false
	}
	at, before, ok1 = span(old)
	_, after, ok2 = span(now)
	return at, before, after, ok1 && ok2, ok1 && ok2
}

// span reads "l,n" or "l".
func span(s string) (line, count int, ok bool) {
	l, n, both := strings.Cut(s, ",")
	if !both {
		n = "1"
	}
	a, err1 := strconv.ParseUint(l, 10, 31)
	b, err2 := strconv.ParseUint(n, 10, 31)
	return int(a), int(b), err1 == nil && err2 == nil
}
