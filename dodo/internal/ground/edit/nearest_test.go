package edit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/internal/fault"
)

func refusal(t *testing.T, file string, edits ...edit.Edit) *fault.Error {
	t.Helper()
	_, err := edit.Apply([]byte(file), edits, edit.Options{})
	if !errors.Is(err, contract.AmbiguousEdit) {
		t.Fatalf("%v", err)
	}
	return fault.From(err)
}

func TestNearest(t *testing.T) {
	const code = "func area(w, h int) int {\n\tif w < 0 {\n\t\treturn 0\n\t}\n\treturn w * h\n}\n"
	for name, c := range map[string]struct {
		file, find string
		line       int
		says       string
	}{
		"tabs and spaces":          {code, "    if w < 0 {\n        return 0\n", 2, "the file begins the line with 1 tabs, the text with 4 spaces"},
		"space at the end, file":   {"a b\nfirst  \nsecond\n", "first\nsecond\n", 2, "at the end of the line the file has 2 spaces, the text has no white space"},
		"space at the end, text":   {"a b\nfirst\nsecond\n", "first \nsecond\n", 2, "the file has no white space, the text has 1 spaces"},
		"CRLF typed":               {"first\nsecond\n", "first\r\nsecond", 1, "the file has LF here"},
		"CRLF in the second":       {"first\nsecond\nthird\n", "first\nsecond\r\nthird", 2, "line endings differ (CRLF and LF); the file has LF here"},
		"case":                     {code, "return W * h", 5, "upper and lower case differ; at column 9 the file has U+0077, the text has U+0057"},
		"quotes":                   {"say “hello” now\n", "say \"hello\" now", 1, "look-alike of a character differs; at column 5 the file has U+201C, the text has U+0022"},
		"no-break space":           {"x\na\u00a0b c\n", "a b c", 2, "U+00A0, the text has a space"},
		"zero width":               {"x\nab\u200bcd\n", "abcd", 2, "U+200B"},
		"line numbers":             {code, "     2\t\tif w < 0 {\n     3\t\t\treturn 0\n", 2, "line numbers of a numbered read"},
		"escapes":                  {"a := 1\nb := 2\n", `a := 1\nb := 2`, 1, "escapes"},
		"a line changed":           {code, "\tif w < 0 {\n\t\treturn 1\n\t}\n\treturn w * h\n", 3, "lines differ; at column 10 the file has U+0030, the text has U+0031"},
		"a line missing":           {code, "\tif w < 0 {\n\t}\n\treturn w * h\n", 3, "lines differ"},
		"a first line changed":     {code, "func areas(w, h int) int {\n\tif w < 0 {\n", 1, "lines differ"},
		"only similar":             {code, "func areaOf(w, h int) (int, error) {", 1, "only similar"},
		"blank lines in the text":  {"aaa bbb\nccc ddd\n", "aaa bbb\n\nccc ddd\n", 2, "lines differ"},
		"spacing inside":           {"x  =  1\n", "x = 1", 1, "indentation or spacing"},
		"the file ends":            {"aaa\nbbb", "aaa\nbbb\n", 2, "the file ends behind this line"},
		"spacing and case at once": {"If  X Then\n", "if x then", 1, "spacing, case or look-alikes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := refusal(t, c.file, edit.Edit{Find: c.find, Replace: "never"})
			n, ok := f.Detail["nearest"].(edit.Nearest)
			if !ok {
				t.Fatalf("no place: %v %s", f.Detail, f.Hint)
			}
			if n.Line != c.line || !strings.Contains(n.Difference, c.says) {
				t.Errorf("%+v", n)
			}
			if f.Detail["found"] != 0 || f.Detail["editIndex"] != 0 || !strings.Contains(f.Hint, fmt.Sprintf("line %d is nearest", c.line)) {
				t.Errorf("%v %s", f.Detail, f.Hint)
			}
		})
	}
	if f := refusal(t, code, edit.Edit{Find: "zzzz qqqq xxxx"}); f.Detail["nearest"] != nil {
		t.Errorf("%+v", f.Detail)
	}
	if f := refusal(t, "x\nthis is what it became\n", edit.Edit{Find: "this is what it was", Replace: "this is what it became"}); f.Detail["replacementLine"] != 2 {
		t.Errorf("%+v", f.Detail)
	}
	if f := refusal(t, "a\n", edit.Edit{Find: "a", Replace: "b"}, edit.Edit{Find: "a", Replace: "c"}); f.Detail["editIndex"] != 1 || f.Detail["changedByEarlierEdit"] != true {
		t.Errorf("%+v", f.Detail)
	}
}

func TestMatchesAreNamed(t *testing.T) {
	f := refusal(t, "x\n  a = 1\r\ny\n  a = 2\n", edit.Edit{Find: "a ="})
	if m, _ := f.Detail["matches"].([]edit.Match); len(m) != 2 || m[0] != (edit.Match{Line: 2, Preview: "  a = 1"}) || m[1] != (edit.Match{Line: 4, Preview: "  a = 2"}) {
		t.Errorf("%+v", f.Detail)
	}
	if f.Detail["found"] != 2 || f.Detail["expected"] != 1 {
		t.Errorf("%+v", f.Detail)
	}
	f = refusal(t, strings.Repeat("a "+strings.Repeat("é", 300)+"\n", 70), edit.Edit{Find: "a "})
	if m, _ := f.Detail["matches"].([]edit.Match); len(m) != 50 || f.Detail["found"] != 70 || len(m[49].Preview) > 160 || m[49].Line != 50 {
		t.Errorf("%d matches", len(m))
	}
	f = refusal(t, "b\naaa\n", edit.Edit{Find: "aa"})
	if m, _ := f.Detail["matches"].([]edit.Match); len(m) != 2 || f.Detail["found"] != 2 || m[1].Line != 2 {
		t.Errorf("overlapping: %+v", f.Detail)
	}
	if f = refusal(t, "b\n", edit.Edit{Find: "a", ReplaceAll: true}); f.Detail["found"] != 0 {
		t.Errorf("%+v", f.Detail)
	}
}

// large is a file with lines as code has them.
func large(end string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "\tvalue%d := compute(%d, \"text %d\") // a comment%s", i%1000, i, i*7, end)
	}
	return b.String()
}

// However large and however alike, a refusal comes soon. The bound is far above what it
// takes, and far below what a search that is not linear would.
func TestRefusalIsSoon(t *testing.T) {
	code := large("\n", 4<<20)
	spaced := strings.Repeat("x"+strings.Repeat("y", 19), 4<<20/20)
	for name, c := range map[string]struct{ file, find string }{
		"one character of a long text":  {code, strings.Replace(code[2<<20:2<<20+4000], "compute", "computes", 1)},
		"a megabyte that repeats":       {spaced, spaced[:1<<20] + "z"},
		"a megabyte of one character":   {strings.Repeat("a", 4<<20), strings.Repeat("a", 1<<20) + "b"},
		"in another case":               {spaced, spaced[:1<<20-20] + strings.ToUpper(spaced[:20])},
		"repeats below the long length": {spaced, spaced[:4000] + "z"},
		"only line breaks":              {strings.Repeat("\n", 4<<20), strings.Repeat("\n", 1<<20) + "zzz"},
		"many lines alike":              {strings.Repeat("return nil\n", 350000), strings.Repeat("return nil\n", 50000) + "return err\n"},
		"CRLF":                          {large("\r\n", 4<<20), "not there at all"},
		"overlapping everywhere":        {strings.Repeat("a", 4<<20), strings.Repeat("a", 2<<20)},
		"no line like it":               {code, strings.Repeat("ÿ", 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := edit.Apply([]byte(c.file), []edit.Edit{{Find: c.find, Replace: "x"}}, edit.Options{})
			if err == nil {
				t.Fatal("no refusal")
			}
			d := time.Since(start)
			t.Logf("%v", d)
			if d > 30*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for name, end := range map[string]string{"LF": "\n", "CRLF": "\r\n"} {
		file := []byte(large(end, 8<<20))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := edit.Apply(file, []edit.Edit{{Find: "\"text 700000\")", Replace: "\"other\"\n)"}}, edit.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/refused", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if _, err := edit.Apply(file, []edit.Edit{{Find: "value1 := compute(100000 \"text\")\n\tsecond", Replace: ""}}, edit.Options{}); err == nil {
					b.Fatal("no refusal")
				}
			}
		})
		b.Run(name+"/all", func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				if _, err := edit.ReplaceAll(file, "compute(", "calculate(\n", edit.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
