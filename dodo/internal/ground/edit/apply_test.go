package edit_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
)

func TestApply(t *testing.T) {
	one := func(find, replace string) []edit.Edit { return []edit.Edit{{Find: find, Replace: replace}} }
	all := func(find, replace string) []edit.Edit {
		return []edit.Edit{{Find: find, Replace: replace, ReplaceAll: true}}
	}
	for name, c := range map[string]struct {
		file  string
		edits []edit.Edit
		want  string
	}{
		"one place":                            {"a b c\n", one("b", "x"), "a x c\n"},
		"no final line break stays":            {"a\nb", one("b", "x\ny"), "a\nx\ny"},
		"LF meets CRLF and stays CRLF":         {"a\r\nb\r\nc\r\n", one("a\nb\n", "x\ny\nz\n"), "x\r\ny\r\nz\r\nc\r\n"},
		"one line in CRLF grows":               {"a\r\nb\r\n", one("b", "x\ny"), "a\r\nx\r\ny\r\n"},
		"last line of CRLF grows":              {"a\r\nb", one("b", "x\ny"), "a\r\nx\r\ny"},
		"mixed: each line keeps its own":       {"a\r\nb\nc\r\n", one("a\nb\nc\n", "1\n2\n3\n"), "1\r\n2\n3\r\n"},
		"mixed: the last break stays the last": {"a\nb\r\nc\n", one("a\nb\n", "1\n2\n3\n"), "1\n2\n3\r\nc\n"},
		"mixed: what both texts have stays":    {"a\r\nb\nc\r\n", one("a\nb\nc\n", "a\nx\ny\nb\nc\n"), "a\r\nx\r\ny\r\nb\nc\r\n"},
		"find begins with a break":             {"a\r\nb\r\n", one("\nb", "\nc"), "a\r\nc\r\n"},
		"find ends with a break":               {"a\r\nb\r\n", one("a\n", ""), "b\r\n"},
		"CR in find: both as typed":            {"a\r\nb\r\n", all("\r\n", "\n"), "a\nb\n"},
		"CR in replace is not doubled":         {"a\r\nb\r\n", one("b", "x\r\ny"), "a\r\nx\r\ny\r\n"},
		"LF to CRLF":                           {"a\nb\n", all("\n", "\r\n"), "a\r\nb\r\n"},
		"lone CR is a character":               {"a\rb\r\nc", one("a\rb", "x"), "x\r\nc"},
		"all, none overlapping":                {"aaaaa", all("aa", "b"), "bba"},
		"expected count":                       {"x y x", []edit.Edit{{Find: "x", Replace: "z", ExpectedCount: 2}}, "z y z"},
		"in order, on the result before":       {"a", []edit.Edit{{Find: "a", Replace: "b"}, {Find: "b", Replace: "cc"}, {Find: "cc", Replace: "d"}}, "d"},
		"UTF-8 mark stays":                     {"\ufeffa\n", one("a", "b"), "\ufeffb\n"},
		"UTF-16LE":                             {"\xff\xfea\x00\r\x00\n\x00b\x00", one("a\n", "\u20ac\U0001f600\n"), "\xff\xfe\xac\x20\x3d\xd8\x00\xde\r\x00\n\x00b\x00"},
		"UTF-16BE":                             {"\xfe\xff\x00a\x00b", one("a", ""), "\xfe\xff\x00b"},
		"an unchanged text":                    {"a\n", one("a", "a"), "a\n"},
		"nothing left":                         {"a", one("a", ""), ""},
		"all in one long line with CRLF later": {"a a a\r\nb", all("a", "x\ny"), "x\r\ny x\r\ny x\r\ny\r\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			before := strings.Clone(c.file)
			file := []byte(c.file)
			r, err := edit.Apply(file, c.edits, edit.Options{})
			if err != nil {
				t.Fatalf("%v", err)
			}
			if string(r.After) != c.want {
				t.Errorf("got %q, want %q", r.After, c.want)
			}
			if string(file) != before {
				t.Errorf("the input was changed")
			}
		})
	}
}

// TestTooLargeAtOnce: many places and a replacement of many lines are refused before the product
// of both is gone through.
func TestTooLargeAtOnce(t *testing.T) {
	file := []byte(strings.Repeat("a", 100_000) + "\r\n")
	begun := time.Now()
	_, err := edit.Apply(file, []edit.Edit{{Find: "a", Replace: strings.Repeat("\n", 200_000), ReplaceAll: true}}, edit.Options{MaxBytes: 8 << 20})
	if !errors.Is(err, contract.FileTooLarge) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
}
