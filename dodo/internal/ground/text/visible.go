package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible writes control and directional characters, and bytes that are not UTF-8, so that
// they are seen: \u{hex}, \x{hex}. LF and TAB stay (decisions 1.5). Text that an edit has to match must
// not go through it.
func Visible(s string) string {
	if hiddenIn(s) == 0 && strings.IndexByte(s, '\r') < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x{` + strconv.FormatUint(uint64(s[0]), 16) + `}`)
		case isHidden(r) || r == '\r':
			b.WriteString(`\u{` + strconv.FormatInt(int64(r), 16) + `}`)
		default:
			b.WriteRune(r)
		}
		s = s[n:]
	}
	return b.String()
}

// isHidden reports whether a character is not seen or turns what is seen around: controls,
// directions, zero width, line and paragraph separators, tags. CR is left to the caller.
func isHidden(r rune) bool {
	if r < 0x20 || r == 0x7f {
		return r != '\n' && r != '\t' && r != '\r'
	}
	return r >= 0x80 && (r <= 0x9f || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029)
}

// hiddenIn counts the hidden characters of a text; a CR counts where no LF follows it.
func hiddenIn(s string) int {
	n := 0
	for i, r := range s {
		if r == '\r' {
			if i+1 < len(s) && s[i+1] != '\n' {
				n++
			}
		} else if isHidden(r) {
			n++
		}
	}
	return n
}
