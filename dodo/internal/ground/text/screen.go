package text

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Screen gives what a terminal would be left with after a command's output: each line in its
// last state, without colours, cursor movements and everything else that is said to a terminal
// and not to people. LF and TAB stay, other control and directional characters are made
// visible as by [Visible], and bytes that are not UTF-8 become U+FFFD.
//
// A character or a control sequence that the bytes end within is not used unless last says
// that nothing follows; used is how many bytes were. Lines are independent of each other:
// output may be given in pieces that end with LF and looks the same. A sequence that says a
// string to the terminal ends with the line at the latest, so that output cannot hide more of
// itself than that.
//
// It takes time and memory in proportion to the bytes, and gives at most [ScreenGrowth] times
// as many. It does not keep a picture of several lines: what a program redraws by moving up
// is there as often as it was drawn.
func Screen(b []byte, last bool) (s string, used int) {
	var out strings.Builder
	out.Grow(len(b))
	var line screenLine
	for fresh := true; used < len(b); {
		rest := b[used:]
		if fresh { // looked at once a line, or time would grow with the square
			// Most lines say nothing to a terminal.
			if end := bytes.IndexByte(rest, '\n'); end >= 0 && isPlainLine(rest[:end]) {
				out.Write(rest[:end+1])
				used += end + 1
				continue
			}
		}
		if fresh = rest[0] == '\n'; fresh {
			line.flush(&out)
			out.WriteByte('\n')
			used++
			continue
		}
		n := line.take(rest, last)
		if n == 0 {
			break
		}
		used += n
	}
	line.flush(&out)
	return out.String(), used
}

// ScreenGrowth is how many times longer than its bytes the text of [Screen] is at most: a
// control character of one byte is shown as \u{7f}.
const ScreenGrowth = 6

// isPlainLine reports whether a line is shown as it is.
func isPlainLine(b []byte) bool {
	ascii := true
	for _, c := range b {
		if c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(b) && hiddenIn(string(b)) == 0
}

// A screenLine is one line of a terminal and the place where the next character goes, which
// is never behind the end.
type screenLine struct {
	cells []rune
	at    int
}

// flush writes the line and begins the next one.
func (l *screenLine) flush(out *strings.Builder) {
	for _, r := range l.cells {
		if isHidden(r) {
			out.WriteString(`\u{` + strconv.FormatInt(int64(r), 16) + `}`)
		} else {
			out.WriteRune(r)
		}
	}
	l.cells, l.at = l.cells[:0], 0
}

func (l *screenLine) put(r rune) {
	if l.at < len(l.cells) {
		l.cells[l.at] = r
	} else {
		l.cells = append(l.cells, r)
	}
	l.at++
}

// The bytes that say something to the terminal.
const (
	charBEL = 0x07
	charBS  = 0x08
	charSO  = 0x0e
	charSI  = 0x0f
	charCAN = 0x18
	charSUB = 0x1a
	charESC = 0x1b
)

// take uses the first character or sequence of b, which is no LF, and says how many bytes
// that were; 0 when it is not whole and more may follow.
func (l *screenLine) take(b []byte, last bool) int {
	switch b[0] {
	case '\r':
		l.at = 0
		return 1
	case charBS:
		l.at = max(0, l.at-1)
		return 1
	case '\t':
		l.tab()
		return 1
	case charSO, charSI: // the other set of characters, and back
		return 1
	case charESC:
		n, ok := l.escape(b)
		return whole(n, ok, len(b), last)
	}
	if !utf8.FullRune(b) && !last {
		return 0
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && n == 1:
		// In the older encodings this byte begins a control sequence. Those that say a string
		// are left alone: it is more likely text in an encoding that nobody told us.
		if b[0] == 0x9b {
			if m, ok := l.csi(b[1:min(len(b), 1+longestCSI)]); ok {
				return 1 + m
			}
		}
		l.put(utf8.RuneError)
	case r == 0x9b:
		m, ok := l.csi(b[n:])
		return whole(n+m, ok, len(b), last)
	case r == 0x9d || r == 0x90 || r == 0x98 || r == 0x9e || r == 0x9f:
		m, ok := stringEnd(b[n:])
		return whole(n+m, ok, len(b), last)
	default:
		l.put(r)
	}
	return n
}

// longestCSI bounds how far the end of a sequence is looked for that may be none.
const longestCSI = 64

// whole is how many of the bytes a sequence uses that has n, or is not whole: none yet, or,
// when nothing follows, all.
func whole(n int, ok bool, bytes int, last bool) int {
	switch {
	case ok:
		return n
	case last:
		return bytes
	}
	return 0
}

// tab moves to the next stop in what is there, and is itself at the end of it.
func (l *screenLine) tab() {
	const stops = 8
	if l.at == len(l.cells) {
		l.put('\t')
		return
	}
	l.at = min(len(l.cells), (l.at/stops+1)*stops)
}

// escape uses a sequence that begins with ESC, if it is whole.
func (l *screenLine) escape(b []byte) (n int, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch c := b[1]; {
	case c == '[':
		n, ok = l.csi(b[2:])
		return 2 + n, ok
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		n, ok = stringEnd(b[2:])
		return 2 + n, ok
	case c >= 0x20 && c <= 0x2f: // such as a choice of characters
		for i, c := range b[2:] {
			switch {
			case c >= 0x30 && c <= 0x7e:
				return 2 + i + 1, true
			case c < 0x20 || c > 0x2f:
				return 2 + i, true
			}
		}
		return 0, false
	case c >= 0x30 && c <= 0x7e:
		return 2, true
	}
	return 1, true // an ESC that begins nothing
}

// csi uses the rest of a control sequence: parameters, and one last character that says what
// it is. A character that cannot be in one ends it and stays.
func (l *screenLine) csi(b []byte) (n int, ok bool) {
	for i, c := range b {
		switch {
		case c >= 0x20 && c <= 0x3f:
		case c >= 0x40 && c <= 0x7e:
			l.act(c, b[:i])
			return i + 1, true
		default:
			return i, true
		}
	}
	return 0, false
}

// stringEnd finds the end of a string that is said to the terminal. A line break and the
// beginning of another sequence end it, too, and stay.
func stringEnd(b []byte) (n int, ok bool) {
	for i, c := range b {
		switch {
		case c == charBEL || c == charCAN || c == charSUB:
			return i + 1, true
		case c == '\n':
			return i, true
		case c == charESC:
			switch {
			case i+1 == len(b):
				return 0, false
			case b[i+1] == '\\':
				return i + 2, true
			}
			return i, true
		case c == 0x9c && i > 0 && b[i-1] == 0xc2: // U+009C
			return i + 1, true
		}
	}
	return 0, false
}

// act does what a control sequence asks for within its line, as far as progress bars need it.
func (l *screenLine) act(what byte, params []byte) {
	n := 0
	for _, c := range params {
		if c < '0' || c > '9' {
			return
		}
		n = min(10*n+int(c-'0'), 1<<20)
	}
	times := max(n, 1)
	switch what {
	case 'K':
		switch {
		case n == 0:
			l.cells = l.cells[:l.at]
		case n == 2:
			l.cells, l.at = l.cells[:0], 0
		}
	case 'J':
		if n == 0 {
			l.cells = l.cells[:l.at]
		}
	case 'G':
		l.at = min(times-1, len(l.cells))
	case 'D':
		l.at = max(0, l.at-times)
	case 'C':
		if l.at == len(l.cells) {
			l.put(' ') // keeps words apart; how far does not matter
			return
		}
		l.at = min(l.at+times, len(l.cells))
	}
}
