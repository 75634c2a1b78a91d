package lexis

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// Version changes with every change of the tokens; an index of another version
// has to be built anew.
const Version = 1

// MaxToken is the longest token in bytes; the rest of a longer word is dropped.
const MaxToken = 64

// mark parts the extras from the running words. No text gives this token.
const mark = "\u2e3a"

// Plus and hash stand for + and # inside tokens, where FTS5 would take the ASCII
// characters as separators.
const (
	plus = "\uff0b"
	hash = "\uff03"
)

// A Tokenizer makes token text. It remembers stems, so one goroutine should keep
// using one Tokenizer. The zero value is ready.
type Tokenizer struct {
	out    []byte // running tokens
	extras []byte // extra tokens, each behind a space
	n      int    // running tokens so far
	stems  []stem
}

// A stem is one remembered word, found by its hash alone: two words of one slot
// push each other out, which costs time and no memory.
type stem struct {
	word [3]uint64 // the word's bytes, zero-padded; never zero when in use
	text [maxStemmed]byte
	n    uint8
}

const (
	maxStemmed = 24 // a longer word keeps its ending
	stemSlots  = 1 << 15
)

// Document appends the token text of text to dst and returns it with the number
// of running tokens.
func (t *Tokenizer) Document(dst []byte, text string) ([]byte, int) {
	t.out, t.extras, t.n = dst, t.extras[:0], 0
	t.walk(text)
	dst, t.out = t.out, nil
	if len(t.extras) > 0 {
		dst = append(append(append(dst, ' '), mark...), t.extras...)
	}
	return dst, t.n
}

func (t *Tokenizer) run(tok []byte) {
	if t.n > 0 {
		t.out = append(t.out, ' ')
	}
	t.out = append(t.out, tok...)
	t.n++
}

func (t *Tokenizer) extra(tok []byte, tail string) {
	t.extras = append(append(append(t.extras, ' '), tok...), tail...)
}

// walk reads text word by word.
func (t *Tokenizer) walk(text string) {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if class[c] == 0 {
				i++
				continue
			}
			j := i + 1
			for j < len(text) && class[text[j]]&alnum != 0 {
				j++
			}
			if j < len(text) && text[j] >= utf8.RuneSelf {
				if r, _ := utf8.DecodeRuneInString(text[j:]); kindOf(r) == letter {
					i = t.wide(text, i)
					continue
				}
			}
			t.ascii(text, i, j)
			i = j
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch kindOf(r) {
		case letter:
			i = t.wide(text, i)
		case ideograph:
			i = t.ideographs(text, i)
		default:
			i += size
		}
	}
}

// ascii takes the parts of the ASCII word text[i:j].
func (t *Tokenizer) ascii(text string, i, j int) {
	parts, from := 0, i
	for k := i + 1; k < j; k++ {
		if class[text[k]]&upper == 0 {
			continue
		}
		before := class[text[k-1]]
		if before&lower != 0 || before&upper != 0 && k+1 < j && class[text[k+1]]&lower != 0 {
			t.part(text[from:k])
			from = k
			parts++
		}
	}
	t.part(text[from:j])
	tail := ""
	switch {
	case strings.HasPrefix(text[j:], "++"):
		tail = plus + plus
	case strings.HasPrefix(text[j:], "#"):
		tail = hash
	}
	if parts == 0 && tail == "" {
		return
	}
	var buf [MaxToken]byte
	n := min(j-i, MaxToken)
	for k := range n {
		buf[k] = lowered[text[i+k]]
	}
	if parts > 0 {
		t.extra(buf[:n], "")
	}
	if tail != "" {
		t.extra(buf[:n], tail)
	}
}

// part takes one word, or one part of a camelCase word.
func (t *Tokenizer) part(s string) {
	if len(s) > maxStemmed {
		var buf [MaxToken]byte
		n := min(len(s), MaxToken)
		for k := range n {
			buf[k] = lowered[s[k]]
		}
		t.run(buf[:n])
		return
	}
	var w [maxStemmed]byte
	digits := byte(0)
	for k := range len(s) {
		w[k] = lowered[s[k]]
		digits |= class[s[k]] & digit
	}
	if len(s) < 4 || digits != 0 {
		t.run(w[:len(s)])
		return
	}
	t.run(t.stem(&w, len(s)))
}

// stem cuts the English ending of a word of lower-case ASCII letters.
func (t *Tokenizer) stem(w *[maxStemmed]byte, n int) []byte {
	key := [3]uint64{binary.LittleEndian.Uint64(w[0:8]), binary.LittleEndian.Uint64(w[8:16]), binary.LittleEndian.Uint64(w[16:24])}
	h := (key[0]*0x9e3779b97f4a7c15 ^ key[1]*0xc2b2ae3d27d4eb4f ^ key[2]*0x165667b19e3779f9) * 0xff51afd7ed558ccd >> 49
	if t.stems == nil {
		t.stems = make([]stem, stemSlots)
	}
	e := &t.stems[h]
	if e.word == key {
		return e.text[:e.n]
	}
	word := string(w[:n])
	s := english.Stem(word, true)
	if s == "" || len(s) > maxStemmed || !isASCII(s) {
		s = word
	}
	e.word = key
	e.n = uint8(copy(e.text[:], s))
	return e.text[:e.n]
}

// wide takes the word that starts at text[i] and has letters beyond ASCII, and
// returns where it ends.
func (t *Tokenizer) wide(text string, i int) int {
	j := i
	for j < len(text) {
		r, size := utf8.DecodeRuneInString(text[j:])
		if kindOf(r) != letter {
			break
		}
		j += size
	}
	// Folding can part a word (half signs, ligatures): its pieces are read one by one.
	for _, s := range strings.FieldsFunc(fold(text[i:j]), func(r rune) bool { return kindOf(r) != letter }) {
		if isASCII(s) {
			t.part(s)
		} else {
			t.run([]byte(cut(s)))
		}
	}
	return j
}

// ideographs takes the characters of a run of a script written without spaces, and
// their pairs as extras, and returns where the run ends.
func (t *Tokenizer) ideographs(text string, i int) int {
	j := i
	for j < len(text) {
		r, size := utf8.DecodeRuneInString(text[j:])
		if kindOf(r) != ideograph {
			break
		}
		j += size
	}
	run := text[i:j]
	if !norm.NFKC.IsNormalString(run) {
		run = norm.NFKC.String(run)
	}
	prev := -1
	for k, r := range run {
		if kindOf(r) != ideograph {
			prev = -1
			continue
		}
		end := k + utf8.RuneLen(r)
		t.run([]byte(run[k:end]))
		if prev >= 0 {
			t.extra([]byte(run[prev:end]), "")
		}
		prev = k
	}
	return j
}

// fold lowers case and takes away Latin, Greek and Cyrillic diacritics and width.
func fold(s string) string {
	d := norm.NFKD.String(s)
	var b strings.Builder
	for _, r := range d {
		switch {
		case r >= 0x300 && r <= 0x36f, r >= 0x64b && r <= 0x65f:
		case r == 'ß', r == 'ẞ':
			b.WriteString("ss")
		default:
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return norm.NFKC.String(b.String())
}

func cut(s string) string {
	if len(s) <= MaxToken {
		return s
	}
	k := MaxToken
	for k > 0 && !utf8.RuneStart(s[k]) {
		k--
	}
	return s[:k]
}

type kind uint8

const (
	other     kind = iota
	letter         // written in words
	ideograph      // written without spaces
)

// kindOf says how a character takes part in words.
func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if class[r] != 0 {
			return letter
		}
		return other
	case r < 0xaa:
		return other
	case r < 0x0e00:
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			return letter
		}
		return other
	case r <= 0x0eff, r >= 0x1000 && r <= 0x109f, r >= 0x1780 && r <= 0x17ff: // Thai, Lao, Myanmar, Khmer
		if unicode.IsLetter(r) || unicode.IsMark(r) {
			return ideograph
		}
		if unicode.IsDigit(r) {
			return letter
		}
		return other
	case r >= 0x2e80 && r <= 0x2fdf, r >= 0x3005 && r <= 0x3007, r >= 0x3021 && r <= 0x3029, r >= 0x3040 && r <= 0x30ff && r != 0x30fb && r != 0x30a0,
		r >= 0x3100 && r <= 0x31bf, r >= 0x31f0 && r <= 0x31ff, r >= 0x3400 && r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff,
		r >= 0xac00 && r <= 0xd7af, r >= 0xf900 && r <= 0xfaff, r >= 0xff66 && r <= 0xff9f, r >= 0x20000 && r <= 0x3ffff:
		return ideograph
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
		return letter
	}
	return other
}

// Classes of ASCII characters.
const (
	lower byte = 1 << iota
	upper
	digit
	alnum = lower | upper | digit
)

var class, lowered = func() (c, l [256]byte) {
	for i := range l {
		l[i] = byte(i)
	}
	for i := 'a'; i <= 'z'; i++ {
		c[i], c[i-32], l[i-32] = lower, upper, byte(i)
	}
	for i := '0'; i <= '9'; i++ {
		c[i] = digit
	}
	return c, l
}()

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
