package edit_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
)

// matchAt is the naive rule: how many bytes of file the text takes at i, or -1.
func matchAt(file, find string, i int) int {
	start := i
	literal := strings.Contains(find, "\r")
	if !literal && i > 0 && file[i-1] == '\r' && i < len(file) && file[i] == '\n' {
		return -1 // inside of a CRLF
	}
	for k := range len(find) {
		if !literal && find[k] == '\n' && strings.HasPrefix(file[i:], "\r\n") {
			i += 2
			continue
		}
		if i >= len(file) || file[i] != find[k] {
			return -1
		}
		i++
	}
	return i - start
}

// outside takes the file apart by the naive rule: the pieces between the places, left to
// right, and how many places there are with those that overlap.
func outside(file, find string) (pieces []string, all int) {
	last, free := 0, 0
	for i := 0; i < len(file); i++ {
		n := matchAt(file, find, i)
		if n < 0 {
			continue
		}
		all++
		if i >= free {
			pieces = append(pieces, file[last:i])
			last, free = i+n, i+n
		}
	}
	return append(pieces, file[last:]), all
}

// holds reports whether after is the pieces with the replacement between them, each bare
// LF of it as LF or CRLF.
func holds(after string, pieces []string, replace string) bool {
	for i, p := range pieces {
		var ok bool
		if after, ok = strings.CutPrefix(after, p); !ok {
			return false
		}
		if i == len(pieces)-1 {
			return after == ""
		}
		for k := range len(replace) {
			if replace[k] == '\n' && (k == 0 || replace[k-1] != '\r') && strings.HasPrefix(after, "\r\n") {
				after = after[2:]
				continue
			}
			if after == "" || after[0] != replace[k] {
				return false
			}
			after = after[1:]
		}
	}
	return false
}

func wide(s string, order binary.AppendByteOrder) []byte {
	out := order.AppendUint16(nil, 0xfeff)
	for _, u := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// check holds one edit against the naive rule.
func check(t *testing.T, file, find, replace string, all bool, count int) {
	t.Helper()
	count = max(count%8, 0)
	r, err := edit.Apply([]byte(file), []edit.Edit{{Find: find, Replace: replace, ReplaceAll: all, ExpectedCount: count}}, edit.Options{MaxBytes: 1 << 20})
	if file != "" && strings.HasPrefix(file, "\xff\xfe") || strings.HasPrefix(file, "\xfe\xff") {
		return
	}
	if !utf8.ValidString(file) || strings.Contains(file[:min(len(file), 8192)], "\x00") {
		if !errors.Is(err, contract.UnsupportedEncoding) {
			t.Fatalf("%v", err)
		}
		return
	}
	if find == "" || !utf8.ValidString(find) || !utf8.ValidString(replace) {
		if !errors.Is(err, contract.InvalidInput) {
			t.Fatalf("%v", err)
		}
		return
	}
	body, marked := strings.CutPrefix(file, "\ufeff")
	pieces, places := outside(body, find)
	want := max(count, 1)
	fits := places == want && len(pieces) == want+1 || all && places > 0
	if !fits {
		var fe *fault.Error
		if !errors.As(err, &fe) || fe.Code != contract.AmbiguousEdit {
			t.Fatalf("%d places, expected %d: %v", places, want, err)
		}
		if places == 0 != (fe.Detail["found"] == 0) {
			t.Fatalf("%d places: %v", places, fe.Detail)
		}
		return
	}
	if errors.Is(err, contract.FileTooLarge) {
		return
	}
	if err != nil {
		t.Fatalf("%d places, expected %d: %v", places, want, err)
	}
	after, still := strings.CutPrefix(string(r.After), "\ufeff")
	if marked && !still {
		t.Fatal("the mark is gone")
	}
	if !marked {
		after = string(r.After)
	}
	if !holds(after, pieces, replace) {
		t.Fatalf("%q: %q -> %q: got %q, outside is %q", body, find, replace, after, pieces)
	}
	// Ends of one kind stay of one kind.
	if !strings.Contains(find+replace, "\r") && !strings.Contains(strings.ReplaceAll(body, "\r\n", ""), "\n") && strings.Contains(body, "\r\n") &&
		strings.Contains(strings.ReplaceAll(after, "\r\n", ""), "\n") && !strings.Contains(strings.ReplaceAll(body, "\r\n", ""), "\r") {
		t.Fatalf("%q: %q -> %q: %q has LF alone", body, find, replace, after)
	}
	if len(after) > 1<<16 {
		return
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		w, err := edit.Apply(wide(body, order), []edit.Edit{{Find: find, Replace: replace, ReplaceAll: all, ExpectedCount: count}}, edit.Options{MaxBytes: 1 << 22})
		if err != nil {
			t.Fatal(err)
		}
		if want := wide(after, order); !bytes.Equal(w.After, want) {
			t.Fatalf("UTF-16: got %x, want %x", w.After, want)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\r\nc", "a\nb\n", "x\ny\nz", false, 1)
	f.Add("a\nb\r\na\nb", "a\nb", "", true, 0)
	f.Add("aaaa", "aa", "a\r\n", false, 2)
	f.Add("\r\r\n\n", "\n", "\n\n", true, 1)
	f.Add("x\r\n", "\r\n", "\n", false, 1)
	f.Add("\ufeffé\U0001f600", "é", "€", false, 1)
	f.Fuzz(check)
}

// The same from few characters, so that texts are there, overlap and differ by their ends.
func TestApplyAgainstTheRule(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	parts := []string{"a", "b", "\n", "\r\n", "\r", "é"}
	random := func(n, kinds int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteString(parts[r.IntN(kinds)])
		}
		return b.String()
	}
	for range 25000 {
		kinds := 3 + r.IntN(4)
		check(t, random(14, kinds), random(5, 2+r.IntN(2)), random(6, kinds), r.IntN(2) == 0, r.IntN(4))
	}
}

// A bound is exact: what is one byte larger is refused, what is as large is not.
func FuzzBound(f *testing.F) {
	f.Add("a\r\na\r\n", "a", "x\ny")
	f.Add("\xff\xfea\x00\r\x00\n\x00", "a", "\n")
	f.Fuzz(func(t *testing.T, file, find, replace string) {
		e := []edit.Edit{{Find: find, Replace: replace, ReplaceAll: true}}
		r, err := edit.Apply([]byte(file), e, edit.Options{})
		if err != nil || len(r.After) < 2 {
			return
		}
		if _, err := edit.Apply([]byte(file), e, edit.Options{MaxBytes: int64(len(r.After))}); err != nil {
			t.Fatalf("%d bytes: %v", len(r.After), err)
		}
		if _, err := edit.Apply([]byte(file), e, edit.Options{MaxBytes: int64(len(r.After)) - 1}); !errors.Is(err, contract.FileTooLarge) {
			t.Fatalf("%d bytes: %v", len(r.After), err)
		}
	})
}

// What reading calls text without being told can be edited, and nothing else can.
func FuzzAgreesWithReading(f *testing.F) {
	for _, s := range []string{"", "a", "\ufeffa", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\xd8", "\xff\xfea", "\xff\xfe\x00\x00", "a\x00", "\xff", "\ufeff\x00", "\xe2\x82"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			return
		}
		kind := text.Detect(b, true)
		_, err := edit.ReplaceAll(b, "x", "x", edit.Options{})
		if (kind.Encoding != "") != (err == nil) || err != nil && !errors.Is(err, contract.UnsupportedEncoding) {
			t.Fatalf("%q is %+v, and editing says %v", b, kind, err)
		}
	})
}
