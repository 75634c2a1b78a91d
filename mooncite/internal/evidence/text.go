package evidence

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// IsControl reports whether r is a presentation control character: one that can
// move, hide or reorder text where it is shown. Such characters are refused in
// identifiers and shown as visible escapes in output.
func IsControl(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x61c, r == 0x200e, r == 0x200f:
		return true
	case r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// IsIdentifier reports whether s can be a session or entry id: 1 to
// [MaxIdentifier] bytes without presentation controls.
func IsIdentifier(s string) bool { return bounded(s, MaxIdentifier) }

// IsKind reports whether s can be a source kind.
func IsKind(s string) bool { return bounded(s, MaxKind) }

func bounded(s string, limit int) bool {
	if s == "" || len(s) > limit || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if IsControl(r) {
			return false
		}
	}
	return true
}

// EscapedLen is the number of bytes r takes in escaped text, in which every
// presentation control, line breaks and tabs too, is written \u{hex}.
func EscapedLen(r rune) int {
	if !IsControl(r) {
		return utf8.RuneLen(r)
	}
	n := 5 // \u{x}
	for v := r >> 4; v > 0; v >>= 4 {
		n++
	}
	return n
}

// Visible returns s for structured output: line feeds and tabs stay, every other
// presentation control becomes a visible \u{hex}, bad UTF-8 becomes U+FFFD
// (decision 1.5).
func Visible(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for _, r := range s {
		if r != '\n' && r != '\t' && IsControl(r) {
			b.WriteString(`\u{` + strconv.FormatInt(int64(r), 16) + `}`)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
