package edit

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A disguise is a way in which a text can be there and yet not be found: look takes the
// whole text, keeps every LF, and gives the same for texts that differ in this way only.
type disguise struct {
	name string
	look func(text []byte) []byte
}

// The disguises, the closest to the text first. The last one sees through all of them: what
// it does not find none of the others does.
var disguises = []disguise{
	{"line endings differ (CRLF and LF)", func(b []byte) []byte { return eachLine(b, "\r") }},
	{"white space at the end of a line differs", func(b []byte) []byte { return eachLine(b, " \t\r") }},
	{"indentation or spacing differs (tabs and spaces)", func(b []byte) []byte { return blur(b, false, false) }},
	{"a blank or another look-alike of a character differs", func(b []byte) []byte { return eachLine(lookAlike(b), "\r") }},
	{"upper and lower case differ", func(b []byte) []byte { return eachLine(bytes.ToLower(b), "\r") }},
	{"spacing, case or look-alikes of characters differ", func(b []byte) []byte { return blur(b, true, true) }},
}

// eachLine takes characters off the end of every line.
func eachLine(text []byte, cut string) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		line, rest, more := bytes.Cut(text, crlf[1:])
		out = append(out, bytes.TrimRight(line, cut)...)
		if more {
			out = append(out, '\n')
		}
		text = rest
	}
	return out
}

// blur leaves no white space at the ends of lines and one space within; asked for, it also
// folds case and look-alikes.
func blur(text []byte, fold, alike bool) []byte {
	out := make([]byte, 0, len(text)+16)
	blank, begun := false, false // white space is pending; the line has something
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			out = append(out, c)
			blank, begun = false, false
			continue
		case c == ' ' || c >= '\t' && c <= '\r':
			blank = true
			continue
		case c >= utf8.RuneSelf && alike:
			r, n := utf8.DecodeRune(text[i:])
			plain, other := plainOf(r)
			i += n - 1
			switch {
			case plain == " ":
				blank = true
				continue
			case other && plain == "":
				continue
			}
			if blank && begun {
				out = append(out, ' ')
			}
			if other {
				out = append(out, plain...)
			} else if fold {
				out = utf8.AppendRune(out, unicode.ToLower(r))
			} else {
				out = append(out, text[i+1-n:i+1]...)
			}
			blank, begun = false, true
			continue
		case fold && c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		if blank && begun {
			out = append(out, ' ')
		}
		out = append(out, c)
		blank, begun = false, true
	}
	return out
}

// lookAlike writes the characters that programs put in the place of typed ones as typed.
func lookAlike(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if plain, other := plainOf(r); other {
			out = append(out, plain...)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

// plainOf is what a look-alike looks like: nothing for what is not seen at all.
func plainOf(r rune) (plain string, other bool) {
	switch {
	case r < 0x80:
		return "", false
	case r == '\u2018' || r == '\u2019' || r == '\u201b' || r == '\u2032':
		return "'", true
	case r == '\u201c' || r == '\u201d' || r == '\u201f' || r == '\u2033':
		return `"`, true
	case r >= '\u2010' && r <= '\u2015' || r == '\u2212':
		return "-", true
	case r == '\u2026':
		return "...", true
	case r == '\u00a0' || r == '\u3000' || r >= '\u2000' && r <= '\u200a' || r == '\u202f':
		return " ", true
	case unicode.Is(unicode.Cf, r): // zero width, directions, marks
		return "", true
	}
	return "", false
}

// maxSeen is how many places that a disguise could explain are looked at.
const maxSeen = 20

// disguised finds the place where the text is under the closest disguise.
func disguised(file, find []byte) (line int, name string, ok bool) {
	all := disguises[len(disguises)-1]
	look := all.look(find)
	if len(bytes.TrimSpace(look)) == 0 {
		return 0, "", false
	}
	seen := all.look(file)
	looks := make([]*finder, len(disguises))
	for i, d := range disguises {
		looks[i] = newFinder(d.look(find))
	}
	best := len(disguises)
	rows := bytes.Count(find, crlf[1:]) + 1
	f := newFinder(look)
	rest, here, from := file, 1, 0 // rest begins with line here, which is at from in seen
	tried := 0
	for i := f.next(seen, 0); i >= 0 && tried < maxSeen && best > 0; i = f.next(seen, i+len(look)) {
		skip := bytes.Count(seen[from:i], crlf[1:])
		rest, here, from = linesFrom(rest, skip+1), here+skip, i
		tried++
		place := firstLines(rest, rows)
		for k, d := range disguises[:best] {
			if k == len(disguises)-1 || looks[k].next(d.look(place), 0) >= 0 {
				best, line = k, here
				break
			}
		}
		if len(place) > 1<<20 {
			break // one look at so much is enough
		}
	}
	if tried == 0 {
		return 0, "", false
	}
	return line, disguises[best].name, true
}

// firstLines is the beginning of a text up to n lines.
func firstLines(text []byte, n int) []byte {
	end := 0
	for ; n > 0; n-- {
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end]
}
