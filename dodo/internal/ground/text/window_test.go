package text_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
)

func TestWindows(t *testing.T) {
	for name, c := range map[string]struct {
		file              string
		q                 text.Query
		content           string
		start, end, total int64
		from, to, next    int64
		partial, cut      bool
	}{
		"all":                        {"a\r\nb\nc", text.Query{}, "a\r\nb\nc", 1, 3, 3, 0, 6, -1, false, false},
		"empty":                      {"", text.Query{StartLine: 1}, "", 1, 0, 0, 0, 0, -1, false, false},
		"empty, last lines":          {"", text.Query{TailLines: 3}, "", 1, 0, 0, 0, 0, -1, false, false},
		"one break":                  {"\n", text.Query{}, "\n", 1, 1, 1, 0, 1, -1, false, false},
		"an end behind the last":     {"a\nb\nc\n", text.Query{StartLine: 2, EndLine: 9}, "b\nc\n", 2, 3, 3, 2, 6, -1, true, false},
		"numbered":                   {"a\nb\nc", text.Query{StartLine: 2, Numbered: true}, "     2\tb\n     3\tc", 2, 3, 3, 2, 5, -1, true, false},
		"last lines":                 {"a\nb\nc\n", text.Query{TailLines: 2}, "b\nc\n", 2, 3, 3, 2, 6, -1, true, false},
		"last lines of a large one":  {"a\nb\nc", text.Query{TailLines: 2, CountBytes: 2}, "b\nc", 0, 0, -1, 2, 5, -1, true, false},
		"mark is no text":            {"\ufeffa\n", text.Query{}, "a\n", 1, 1, 1, 3, 5, -1, false, false},
		"UTF-16 with its mark":       {"\xff\xfea\x00\n\x00\xac\x20", text.Query{StartLine: 2}, "€", 2, 2, 2, 6, 8, -1, true, false},
		"windows-1252":               {"\x80\x85\n", text.Query{Encoding: text.Windows1252}, "€…\n", 1, 1, 1, 0, 3, -1, false, false},
		"from inside of a character": {"a€b", text.Query{ByBytes: true, ByteOffset: 2}, "€b", 1, 1, 1, 1, 5, -1, true, false},
		"cut between lines":          {strings.Repeat("0123456789\n", 9), text.Query{MaxBytes: 40}, strings.Repeat("0123456789\n", 3), 1, 3, 9, 0, 33, 33, true, true},
		"cut inside of a long line":  {strings.Repeat("€", 50), text.Query{MaxBytes: 40}, strings.Repeat("€", 13), 1, 1, 1, 0, 39, 39, true, true},
		"the end of a long line":     {"a\n" + strings.Repeat("€", 50), text.Query{TailLines: 2, MaxBytes: 40}, strings.Repeat("€", 13), 2, 2, 2, 113, 152, -1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.q.CountBytes == 0 {
				c.q.CountBytes = 1 << 20
			}
			w, err := text.Read(t.Context(), strings.NewReader(c.file), int64(len(c.file)), c.q)
			if err != nil {
				t.Fatal(err)
			}
			if w.Content != c.content || w.StartLine != c.start || w.EndLine != c.end || w.TotalLines != c.total || w.StartByte != c.from || w.EndByte != c.to || w.NextOffset != c.next || w.Partial != c.partial || w.Truncated != c.cut {
				t.Errorf("%+v", w)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		q    text.Query
		code fault.Code
		says map[string]any
	}{
		"first line behind the last": {"a\nb", text.Query{StartLine: 3}, contract.InvalidInput, map[string]any{"totalLines": int64(2)}},
		"lines the wrong way round":  {"a\nb", text.Query{StartLine: 2, EndLine: 1}, contract.InvalidInput, nil},
		"two ways at once":           {"a\nb", text.Query{StartLine: 2, TailLines: 1}, contract.InvalidInput, nil},
		"offset behind the end":      {"a", text.Query{ByBytes: true, ByteOffset: 2}, contract.InvalidInput, map[string]any{"size": int64(1)}},
		"no such encoding":           {"a", text.Query{Encoding: "utf-7"}, contract.InvalidInput, nil},
		"numbers nobody counted":     {"a\nb", text.Query{TailLines: 1, Numbered: true, CountBytes: 1}, contract.InvalidInput, nil},
		"not UTF-8":                  {"a\nb\xe9c\n", text.Query{}, contract.UnsupportedEncoding, map[string]any{"offset": 3, "line": 2}},
		"not UTF-8 behind the head":  {strings.Repeat("a\n", 40000) + "\xe9\n", text.Query{TailLines: 1}, contract.UnsupportedEncoding, map[string]any{"offset": int64(80000)}},
		"half of a pair":             {"\xff\xfea\x00\x00\xd8b\x00", text.Query{Encoding: text.UTF16LE}, contract.UnsupportedEncoding, map[string]any{"offset": int64(4)}},
		"half of a unit":             {"\xff\xfea\x00b", text.Query{Encoding: text.UTF16LE}, contract.UnsupportedEncoding, map[string]any{"offset": int64(4)}},
		"bad shift_jis":              {"a\x81\x20", text.Query{Encoding: text.ShiftJIS}, contract.UnsupportedEncoding, map[string]any{"offset": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := text.Read(t.Context(), strings.NewReader(c.file), int64(len(c.file)), c.q)
			if !errors.Is(err, c.code) {
				t.Fatalf("%+v %v", w, err)
			}
			for k, v := range c.says {
				if got := fault.From(err).Detail[k]; got != v {
					t.Errorf("%s is %v (%T), want %v", k, got, got, v)
				}
			}
		})
	}
	if _, err := text.Read(t.Context(), strings.NewReader("a"), 2, text.Query{}); !errors.Is(err, contract.FileChanged) || !fault.From(err).Retryable {
		t.Errorf("a file that became shorter: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := text.Read(ctx, strings.NewReader("a"), 1, text.Query{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Lines are found across the pieces in which a file is read.
func TestDeepLines(t *testing.T) {
	for _, enc := range []text.Encoding{text.UTF8, text.UTF16LE, text.UTF16BE} {
		var want []string
		for i := range 60000 {
			want = append(want, fmt.Sprintf("line %d %s\n", i+1, strings.Repeat("x", i%17)))
		}
		b, err := codecs[enc].NewEncoder().String(strings.Join(want, ""))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []int{1, 2, 13000, 26211, 40000, 59999, 60000} {
			for _, counted := range []int64{0, 1 << 30} {
				w, err := text.Read(t.Context(), strings.NewReader(b), int64(len(b)), text.Query{Encoding: enc, StartLine: int64(line), EndLine: int64(line), CountBytes: counted})
				if err != nil || w.Content != want[line-1] || counted > 0 && w.TotalLines != 60000 {
					t.Errorf("%s, line %d: %+v %v", enc, line, w, err)
				}
				w, err = text.Read(t.Context(), strings.NewReader(b), int64(len(b)), text.Query{Encoding: enc, ByBytes: true, ByteOffset: w.StartByte, MaxBytes: 32, CountBytes: counted})
				if err != nil || counted > 0 && w.StartLine != int64(line) || !strings.HasPrefix(w.Content, want[line-1][:8]) {
					t.Errorf("%s, offset of line %d: %+v %v", enc, line, w, err)
				}
			}
		}
	}
}

func TestHidden(t *testing.T) {
	const s = "a\x1b[1m\u202eb\u200b\r\nc\td\r"
	w, err := text.Read(t.Context(), strings.NewReader(s), int64(len(s)), text.Query{})
	if err != nil || w.Content != s || w.Hidden != 3 {
		t.Errorf("%+v %v", w, err)
	}
	if got, want := text.Visible(s+"\xff"), `a\u{1b}[1m\u{202e}b\u{200b}\u{d}`+"\nc\td"+`\u{d}\x{ff}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s := "plain\n\ttext é\ufffd"; text.Visible(s) != s {
		t.Errorf("%q", text.Visible(s))
	}
}

// huge is a file of 5 GB that is a hole but for its first and last lines.
func huge(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(strings.Repeat("an early line of the log\n", 3000)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("a late line of the log\n", 5000)), 5<<30); err != nil {
		t.Skipf("no file of 5 GB here: %v", err)
	}
	return f
}

// The last lines of 5 GB come at once and take no memory of the file's size.
func TestHuge(t *testing.T) {
	f := huge(t)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	w, err := text.Read(t.Context(), f, info.Size(), text.Query{TailLines: 100, CountBytes: 8 << 20})
	d := time.Since(start)
	runtime.ReadMemStats(&after)
	if err != nil || w.Content != strings.Repeat("a late line of the log\n", 100) || w.TotalLines != -1 || w.StartLine != 0 || !w.Partial {
		t.Fatalf("%+v %v", w, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes allocated", used)
	}
	if d > time.Second {
		t.Errorf("took %v", d)
	}
	w, err = text.Read(t.Context(), f, info.Size(), text.Query{ByBytes: true, ByteOffset: 5<<30 + 23, MaxBytes: 100})
	if err != nil || w.StartByte != 5<<30+23 || w.NextOffset != 5<<30+123 || !strings.HasPrefix(w.Content, "a late line") {
		t.Errorf("%+v %v", w, err)
	}
}

func BenchmarkTailOfHuge(b *testing.B) {
	f := huge(b)
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := text.Read(b.Context(), f, info.Size(), text.Query{TailLines: 100, CountBytes: 8 << 20}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLinesOf8MiB(b *testing.B) {
	s := strings.Repeat("\tvalue := compute(1, \"text\") // a comment\n", 8<<20/42)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := text.Read(b.Context(), strings.NewReader(s), int64(len(s)), text.Query{StartLine: 190000, CountBytes: 8 << 20}); err != nil {
			b.Fatal(err)
		}
	}
}
