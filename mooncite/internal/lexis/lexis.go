package lexis

import (
	"bytes"
	"encoding/binary"
	"slices"
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
	sieve  *Sieve // nil: every word is taken
}

// A stem is how one remembered word is cut: keep of its bytes, then tail. Words are
// known by a hash of 64 bits; a pair of slots keeps the two words seen last of those
// that fall into it, so memory is bounded.
type stem struct {
	hash uint64 // 0: empty
	keep uint8
	more uint8
	tail [maxTail]byte
}

const (
	maxStemmed = 24 // a longer word keeps its ending
	maxTail    = 6
	stemBits   = 17 // slots, 2 MiB
)

// Document appends the token text of text to dst and returns it with the number
// of running tokens.
func (t *Tokenizer) Document(dst []byte, text string) ([]byte, int) {
	t.out, t.extras, t.n = slices.Grow(dst, len(text)+len(text)/4+64), t.extras[:0], 0
	return t.document(text)
}

func (t *Tokenizer) document(text string) ([]byte, int) {
	t.walk(text)
	dst := t.out
	t.out = nil
	if len(t.extras) > 0 {
		dst = append(append(append(dst, ' '), mark...), t.extras...)
	}
	return dst, t.n
}

// HasExtras reports whether token text has extras.
func HasExtras(tokens []byte) bool { return bytes.Contains(tokens, []byte(mark)) }

func (t *Tokenizer) run(tok string) {
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
			// Up to the end of the word; camel tells of a capital behind its first letter.
			j, seen, camel := i+1, class[c], byte(0)
			for j < len(text) {
				k := class[text[j]]
				if k == 0 {
					break
				}
				seen |= k
				camel |= k
				j++
			}
			if j < len(text) && text[j] >= utf8.RuneSelf {
				if r, _ := utf8.DecodeRuneInString(text[j:]); kindOf(r) == letter {
					i = t.wide(text, i)
					continue
				}
			}
			switch {
			case camel&upper != 0:
				t.camel(text, i, j)
			default:
				if t.sieve == nil || t.sieve.may(text[i:j]) {
					t.part(text[i:j], seen)
				} else {
					t.leave()
				}
				if j < len(text) && (text[j] == '+' || text[j] == '#') {
					t.signed(text, i, j)
				}
			}
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

// camel takes the parts of the ASCII word text[i:j], and the whole as an extra when
// there are several.
func (t *Tokenizer) camel(text string, i, j int) {
	parts, from, seen := 0, i, class[text[i]]
	for k := i + 1; k < j; k++ {
		c, before := class[text[k]], class[text[k-1]]
		if c&upper != 0 && (before&lower != 0 || before&upper != 0 && k+1 < j && class[text[k+1]]&lower != 0) {
			t.part(text[from:k], seen)
			from, seen = k, 0
			parts++
		}
		seen |= c
	}
	t.part(text[from:j], seen)
	if parts > 0 {
		var buf [MaxToken]byte
		t.extra(lowerInto(&buf, text[i:j]), "")
	}
	t.signed(text, i, j)
}

// signed adds a word with the + or # behind it (C++, F#) as an extra.
func (t *Tokenizer) signed(text string, i, j int) {
	tail := ""
	switch {
	case strings.HasPrefix(text[j:], "++"):
		tail = plus + plus
	case strings.HasPrefix(text[j:], "#"):
		tail = hash
	default:
		return
	}
	var buf [MaxToken]byte
	t.extra(lowerInto(&buf, text[i:j]), tail)
}

func lowerInto(buf *[MaxToken]byte, s string) []byte {
	n := min(len(s), MaxToken)
	for k := range n {
		buf[k] = lowered[s[k]]
	}
	return buf[:n]
}

// part takes one word, or one part of a camelCase word; seen are the classes of its
// characters.
func (t *Tokenizer) part(s string, seen byte) {
	if t.n > 0 {
		t.out = append(t.out, ' ')
	}
	t.n++
	at := len(t.out)
	if len(s) > MaxToken {
		s = s[:MaxToken]
	}
	t.out = append(t.out, s...)
	w := t.out[at:]
	if seen&upper != 0 {
		for k, c := range w {
			w[k] = lowered[c]
		}
	}
	if len(w) < 4 || len(w) > maxStemmed || seen&digit != 0 {
		return
	}
	t.out = t.stem(t.out, at)
}

// stem cuts the English ending of the last word of out, which begins at at.
func (t *Tokenizer) stem(out []byte, at int) []byte {
	h := hashWord(out[at:])
	if t.stems == nil {
		t.stems = make([]stem, 1<<stemBits)
	}
	pair := (*[2]stem)(t.stems[h>>(64-stemBits+1)<<1:])
	if pair[0].hash != h && pair[1].hash == h {
		pair[0], pair[1] = pair[1], pair[0]
	}
	if e := &pair[0]; e.hash == h {
		return append(out[:at+int(e.keep)], e.tail[:e.more]...)
	}
	word := string(out[at:])
	s := english.Stem(word, true)
	if s == "" || len(s) > maxStemmed || !isASCII(s) {
		s = word
	}
	keep := 0
	for keep < len(s) && keep < len(word) && s[keep] == word[keep] {
		keep++
	}
	if len(s)-keep <= maxTail {
		e := stem{hash: h, keep: uint8(keep)}
		e.more = uint8(copy(e.tail[:], s[keep:]))
		pair[0], pair[1] = e, pair[0]
	}
	return append(out[:at], s...)
}

// hashWord mixes a word of 4 to maxStemmed bytes into 64 bits; it is never 0.
func hashWord(w []byte) uint64 {
	const p1, p2 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	h := uint64(len(w)) * p1
	for len(w) >= 8 {
		h = mix(h ^ binary.LittleEndian.Uint64(w)*p2)
		w = w[8:]
	}
	var rest uint64
	if len(w) >= 4 {
		rest = uint64(binary.LittleEndian.Uint32(w)) | uint64(binary.LittleEndian.Uint32(w[len(w)-4:]))<<32
	} else {
		for _, c := range w {
			rest = rest<<8 | uint64(c)
		}
	}
	return mix(h^rest*p2) | 1
}

// mix spreads every bit over all others (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
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
			seen := byte(0)
			for k := range len(s) {
				seen |= class[s[k]]
			}
			t.part(s, seen)
		} else {
			t.run(cut(s))
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
		t.run(run[k:end])
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
