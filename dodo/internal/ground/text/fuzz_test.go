package text_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
)

var codecs = map[text.Encoding]encoding.Encoding{
	text.UTF8: encoding.Nop, text.UTF16LE: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), text.UTF16BE: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
	text.Windows1252: charmap.Windows1252, text.Latin1: charmap.ISO8859_1, text.ShiftJIS: japanese.ShiftJIS, text.GB18030: simplifiedchinese.GB18030,
}

// alphabet are characters that an encoding has, of every length it knows.
var alphabet = map[text.Encoding]string{
	text.UTF8: "ab \t01é€\U0001f600\r\u200b\ufffd", text.UTF16LE: "ab 01é€\U0001f600\u0a0a\u0a00\u000d\ufffd", text.UTF16BE: "ab 01é€\U0001f600\u0a0a\u0a00\u010a",
	text.Windows1252: "ab 0é€Ÿ", text.Latin1: "ab 0éÿ\u0085", text.ShiftJIS: "ab 0ｱ表ソ日本", text.GB18030: "ab 0日本é\U0001f600\ufffd丂",
}

// A file is a text of which everything is known: its lines, and where each character is.
type file struct {
	enc     text.Encoding
	bytes   []byte
	body    int
	chars   []string // in UTF-8
	offsets []int    // of the characters, and the size
	lines   []int    // the characters that begin lines
}

func invent(r *rand.Rand, enc text.Encoding, n int, breaks int) file {
	f := file{enc: enc}
	letters := []rune(alphabet[enc])
	if r.IntN(2) == 0 {
		switch enc {
		case text.UTF8:
			f.bytes = []byte("\ufeff")
		case text.UTF16LE:
			f.bytes = []byte("\xff\xfe")
		case text.UTF16BE:
			f.bytes = []byte("\xfe\xff")
		}
	}
	f.body = len(f.bytes)
	fresh := true
	for range n {
		if fresh {
			f.lines = append(f.lines, len(f.chars))
		}
		c := string(letters[r.IntN(len(letters))])
		if fresh = r.IntN(breaks) == 0; fresh {
			c = "\n"
		}
		b, err := codecs[enc].NewEncoder().String(c)
		if err != nil {
			panic(fmt.Sprintf("%s cannot write %q", enc, c))
		}
		f.chars = append(f.chars, c)
		f.offsets = append(f.offsets, len(f.bytes))
		f.bytes = append(f.bytes, b...)
	}
	f.offsets = append(f.offsets, len(f.bytes))
	return f
}

// part is the text between two bytes that begin characters.
func (f file) part(t *testing.T, from, to int64) string {
	t.Helper()
	a, okA := index(f.offsets, int(from))
	b, okB := index(f.offsets, int(to))
	if !okA || !okB || a > b {
		t.Fatalf("%d to %d are not characters of the file", from, to)
	}
	return strings.Join(f.chars[a:b], "")
}

func index(list []int, v int) (int, bool) { return slices.BinarySearch(list, v) }

// lineStart is the byte where line n, from 1, begins; the size behind the last.
func (f file) lineStart(n int64) int64 {
	if n > int64(len(f.lines)) {
		return int64(len(f.bytes))
	}
	return int64(f.offsets[f.lines[n-1]])
}

func number(s string, from int64) string {
	var b strings.Builder
	for _, l := range strings.SplitAfter(s, "\n") {
		if l != "" {
			fmt.Fprintf(&b, "%6d\t%s", from, l)
			from++
		}
	}
	return b.String()
}

// Every window is what the whole text says, in every encoding and under every bound.
func TestWindowsAgainstTheWhole(t *testing.T) {
	for seed := range uint64(7000) {
		r := rand.New(rand.NewPCG(seed, 3))
		enc := text.Encodings[int(seed)%len(text.Encodings)]
		n := r.IntN(120)
		if seed%500 < 7 {
			n = 6000 // further than one looks back for the beginning of a character
		}
		f := invent(r, enc, n, []int{1, 2, 5, 20, 1 << 30}[r.IntN(5)])
		size, total := int64(len(f.bytes)), int64(len(f.lines))
		q := text.Query{Encoding: enc, MaxBytes: 32 + r.IntN(64), Numbered: r.IntN(3) == 0}
		if r.IntN(4) == 0 {
			q.MaxBytes = 1 << 12
		}
		if q.Numbered || r.IntN(2) == 0 {
			q.CountBytes = 1 << 20
		}
		switch mode := r.IntN(3); mode {
		case 0:
			q.StartLine = int64(r.IntN(int(total) + 2))
			if r.IntN(2) == 0 {
				q.EndLine = max(q.StartLine, 1) + int64(r.IntN(6))
			}
		case 1:
			q.TailLines = 1 + int64(r.IntN(int(total)+3))
		case 2:
			q.ByBytes, q.ByteOffset = true, int64(r.IntN(int(size)+1))
		}
		w, err := text.Read(t.Context(), bytes.NewReader(f.bytes), size, q)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, %+v\nfile %q (%d lines)\nwindow %+v\n%s", seed, q, f.bytes, total, w, fmt.Sprintf(format, args...))
		}
		if q.StartLine > max(total, 1) {
			if !errors.Is(err, contract.InvalidInput) {
				fail("%v", err)
			}
			continue
		}
		if err != nil {
			// Where no character begins for sure, the offset cannot be used.
			if q.ByBytes && (enc == text.ShiftJIS || enc == text.GB18030) && errors.Is(err, contract.UnsupportedEncoding) && size > 4096 {
				continue
			}
			fail("%v", err)
		}
		if w.Kind.Encoding != enc || w.Kind.BOM != f.body {
			fail("kind")
		}
		if size <= q.CountBytes && w.TotalLines != total || size > q.CountBytes && w.TotalLines != -1 {
			fail("total")
		}
		plain := f.part(t, w.StartByte, w.EndByte)
		content := plain
		if q.Numbered {
			content = number(plain, w.StartLine)
		}
		if w.Content != content {
			fail("content: want %q", content)
		}
		if len(w.Content) > q.MaxBytes {
			fail("%d bytes", len(w.Content))
		}
		if w.StartLine > 0 && plain != "" {
			s, e := f.lineStart(w.StartLine), f.lineStart(w.EndLine+1)
			if w.StartByte < s || w.StartByte >= f.lineStart(w.StartLine+1) || w.EndByte > e || w.EndByte <= f.lineStart(w.EndLine) {
				fail("line numbers")
			}
		}
		if (w.NextOffset == w.EndByte) != (w.EndByte < size) && w.NextOffset != -1 || w.Partial != (plain != strings.Join(f.chars, "")) {
			fail("partial or next")
		}
		// What was asked for, and that a bound cuts as little as it can.
		switch {
		case q.TailLines > 0:
			from := f.lineStart(max(total-q.TailLines+1, 1))
			if w.EndByte != size || !w.Truncated && w.StartByte != from || w.Truncated && w.StartByte <= from {
				fail("tail, want from %d", from)
			}
			if w.Truncated && plain == "" && f.enc != text.ShiftJIS && f.enc != text.GB18030 {
				fail("nothing")
			}
			if k, whole := index(f.starts(), int(w.StartByte)); w.Truncated && whole && k > 0 && !q.Numbered && len(f.part(t, int64(f.starts()[k-1]), size)) <= q.MaxBytes {
				fail("one line more fits")
			}
			continue
		case q.ByBytes:
			if from := max(q.ByteOffset, int64(f.body)); w.StartByte > from || from-w.StartByte > 3 {
				fail("begin")
			}
			if w.EndByte < size && !q.Numbered && len(plain)+utf8.UTFMax <= q.MaxBytes {
				fail("one character more fits")
			}
			continue
		}
		from, to := f.lineStart(max(q.StartLine, 1)), size
		if q.EndLine > 0 {
			to = f.lineStart(q.EndLine + 1)
		}
		if w.StartByte != from || !w.Truncated && w.EndByte != to || w.Truncated && w.EndByte >= to {
			fail("lines, want %d to %d", from, to)
		}
		if w.Truncated && !q.Numbered && w.EndByte == f.lineStart(w.EndLine+1) && len(plain)+len(f.part(t, w.EndByte, f.lineStart(w.EndLine+2))) <= q.MaxBytes {
			fail("one line more fits")
		}
		// Going on by offsets gives the rest.
		for w.NextOffset >= 0 {
			w, err = text.Read(t.Context(), bytes.NewReader(f.bytes), size, text.Query{Encoding: enc, ByBytes: true, ByteOffset: w.NextOffset, MaxBytes: 40})
			if err != nil {
				fail("going on: %v", err)
			}
			if w.Content == "" {
				fail("going on gives nothing")
			}
			plain += w.Content
		}
		if want := f.part(t, from, size); plain != want {
			fail("going on: %q, want %q", plain, want)
		}
	}
}

func (f file) starts() []int {
	out := make([]int, len(f.lines))
	for i, c := range f.lines {
		out[i] = f.offsets[c]
	}
	return out
}

// Whatever the bytes are: no panic, valid text within the bound or a refusal, and the
// offsets fit.
func FuzzRead(f *testing.F) {
	f.Add([]byte("a\r\nb\xff\n"), "", int64(1), int64(0), int64(0), int64(-1), 40, true)
	f.Add([]byte("\xff\xfea\x00\n\x00\x00\xd8"), "utf-16le", int64(0), int64(0), int64(3), int64(-1), 40, false)
	f.Add([]byte("\x81\x30\x81\x30\x81"), "gb18030", int64(0), int64(0), int64(0), int64(2), 40, false)
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00"), "", int64(0), int64(0), int64(0), int64(0), 40, false)
	f.Fuzz(func(t *testing.T, b []byte, enc string, start, end, tail, offset int64, limit int, numbered bool) {
		q := text.Query{Encoding: text.Encoding(enc), StartLine: start, EndLine: end, TailLines: tail, ByBytes: offset >= 0, ByteOffset: max(offset, 0), MaxBytes: limit % 5000, Numbered: numbered, CountBytes: int64(limit % 2 * 1000)}
		w, err := text.Read(t.Context(), bytes.NewReader(b), int64(len(b)), q)
		if err != nil {
			return
		}
		bound := q.MaxBytes
		if bound <= 0 {
			bound = text.DefaultBytes
		}
		if len(w.Content) > max(bound, 32) || !utf8.ValidString(w.Content) {
			t.Fatalf("%d bytes: %q", len(w.Content), w.Content)
		}
		if w.Kind.Encoding == text.UTF8 && !numbered && w.Content != string(b[w.StartByte:w.EndByte]) {
			t.Fatalf("%q is not %q", w.Content, b[w.StartByte:w.EndByte])
		}
		if w.StartByte > w.EndByte || w.EndByte > int64(len(b)) || w.NextOffset >= 0 && w.NextOffset != w.EndByte {
			t.Fatalf("%+v", w)
		}
	})
}
