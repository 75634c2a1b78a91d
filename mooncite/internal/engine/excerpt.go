package engine

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of text in answers, in bytes.
const (
	excerptBytes   = 1024
	targetBytes    = 4096
	neighbourBytes = 512
	lineReach      = 256 // how far before a match its line may begin
	matchReach     = 128 // how much is shown before a match inside a long line
)

// A fold is a text made easy to search: lower case, every run of white space one
// space, with the way back to the text's own bytes.
type fold struct {
	text string
	at   []int32 // offset in the original of every byte of text; nil: the same
}

// folded folds a text of at most 2 GiB.
func folded(s string) fold {
	var b strings.Builder
	b.Grow(len(s))
	at := make([]int32, 0, len(s))
	space := true
	for i, r := range s {
		if unicode.IsSpace(r) {
			if !space {
				b.WriteByte(' ')
				at = append(at, int32(i))
				space = true
			}
			continue
		}
		space = false
		n := b.Len()
		if r < utf8.RuneSelf && (r < 'A' || r > 'Z') {
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(unicode.ToLower(r))
		}
		for range b.Len() - n {
			at = append(at, int32(i))
		}
	}
	return fold{strings.TrimSuffix(b.String(), " "), at}
}

// findSpaced is find in a text whose white space is not folded: where the needle has a
// space the text may have any white space.
func (f *fold) findSpaced(needle string) int {
	first, rest, _ := strings.Cut(needle, " ")
	if first == "" {
		return -1
	}
next:
	for from := 0; ; from++ {
		i := strings.Index(f.text[from:], first)
		if i < 0 {
			return -1
		}
		from += i
		if !f.atBorder(from) {
			continue
		}
		end := from + len(first)
		for word := range strings.FieldsSeq(rest) {
			begin := len(f.text) - len(strings.TrimLeftFunc(f.text[end:], unicode.IsSpace))
			if begin == end || !strings.HasPrefix(f.text[begin:], word) {
				continue next
			}
			end = begin + len(word)
		}
		if f.atBorder(end) {
			return from
		}
	}
}

// find returns where needle, folded too, stands in the original text as a whole word
// or words, or -1.
func (f *fold) find(needle string) int {
	if needle == "" {
		return -1
	}
	for from := 0; ; {
		i := strings.Index(f.text[from:], needle)
		if i < 0 {
			return -1
		}
		i += from
		if f.atBorder(i) && f.atBorder(i+len(needle)) {
			if f.at == nil {
				return i
			}
			return int(f.at[i])
		}
		_, n := utf8.DecodeRuneInString(f.text[i:])
		from = i + n
	}
}

// atBorder reports whether a needle that begins (or ends) at offset i does not cut a
// word written with spaces around it.
func (f *fold) atBorder(i int) bool {
	before, _ := utf8.DecodeLastRuneInString(f.text[:i])
	after, _ := utf8.DecodeRuneInString(f.text[i:])
	if i == 0 || i == len(f.text) {
		return true
	}
	return !spaced(before) || !spaced(after)
}

// spaced reports whether r is a letter or digit of a script with spaces between words.
func spaced(r rune) bool {
	if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return false
	}
	return !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// excerpt chooses the piece of text around a match at offset at (-1: none), at most
// limit bytes, cut at character borders.
func excerpt(text string, at, limit int) (from, to int) {
	if len(text) <= limit {
		return 0, len(text)
	}
	if at < 0 {
		at = 0
	}
	from = strings.LastIndexByte(text[:at], '\n') + 1
	if at-from > lineReach {
		from = at - matchReach
	}
	from = min(from, len(text)-limit)
	from = max(from, 0)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	to = min(len(text), from+limit)
	for to > from && to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	return from, to
}
