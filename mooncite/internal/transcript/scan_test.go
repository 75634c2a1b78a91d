package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
)

var claudeFile = File{evidence.Claude, "-w-app/11111111-1111-4111-8111-111111111111.jsonl"}

func claudeLine(n int, parent, text string) string {
	b, _ := json.Marshal(text)
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%s,"cwd":"/w","message":{"role":"user","content":%s}}`, n, parent, b)
}

// A reader may give bytes in any portions; the records are the same.
func TestScanPortions(t *testing.T) {
	for _, x := range fixtures(t) {
		if ShapeOf(x.file) == Document || len(x.data) > 20<<10 {
			continue
		}
		whole, err := read(x.file, x.data, Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(x.file, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []given
		emit := func(r *Record, e *Entry) error {
			rec := *r
			rec.Bytes = nil
			got = append(got, given{Rec: rec, Entry: *e})
			return nil
		}
		pos, err := Scan(iotest.DataErrReader(iotest.OneByteReader(bytes.NewReader(x.data))), x.file, Position{}, p, emit)
		if err != nil || pos != whole.pos {
			t.Errorf("%s: position %v, want %v (%v)", x.path, pos, whole.pos, err)
		}
		if _, err := p.Finish(emit); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(plain(whole.all), plain(got)); d != "" {
			t.Errorf("%s: byte by byte (-whole +portions):\n%s", x.path, d)
		}
	}
}

func TestScanReadError(t *testing.T) {
	first := claudeLine(1, "null", "before the fault") + "\n"
	boom := errors.New("boom")
	r := io.MultiReader(strings.NewReader(first+claudeLine(2, "u1", "cut")), iotest.ErrReader(boom))
	p, _ := New(claudeFile, nil)
	n := 0
	pos, err := Scan(r, claudeFile, Position{}, p, func(*Record, *Entry) error { n++; return nil })
	if !errors.Is(err, boom) || n != 1 || pos != (Position{int64(len(first)), 1}) {
		t.Errorf("%d entries, position %v, error %v", n, pos, err)
	}
	stop := errors.New("stop")
	p, _ = New(claudeFile, nil)
	pos, err = Scan(strings.NewReader(first), claudeFile, Position{}, p, func(*Record, *Entry) error { return stop })
	if !errors.Is(err, stop) || pos != (Position{}) {
		t.Errorf("position %v, error %v", pos, err)
	}
}

// A line of 60 MB is a record; one above the bound is passed over; neither harms its
// neighbours, and memory stays a small multiple of the largest record.
func TestScanHugeLines(t *testing.T) {
	if testing.Short() {
		t.Skip("reads some hundred megabytes")
	}
	fill := func(n int64) io.Reader { return io.LimitReader(repeat("all work and no play "), n) }
	text := func(s string) io.Reader { return strings.NewReader(s) }
	const open, shut = `{"type":"user","uuid":"big","parentUuid":"u1","message":{"role":"user","content":[{"type":"tool_result","content":"`, `"}]}}`
	r := io.MultiReader(
		text(claudeLine(1, "null", "before")+"\n"),
		text(open), fill(60<<20), text(shut+"\n"),
		text(claudeLine(2, "big", "between")+"\n"),
		text(open), fill(200<<20), text(shut+"\n"),
		text(claudeLine(3, "gone", "after")+"\n"),
		text(open), fill(100<<20), // no line end: not read, not counted
	)
	p, _ := New(claudeFile, nil)
	var ids []string
	var kept int
	emit := func(_ *Record, e *Entry) error {
		ids = append(ids, e.ID)
		for _, s := range e.Spans {
			kept += len(s.Text)
		}
		return nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pos, err := Scan(r, claudeFile, Position{}, p, emit)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	res, err := p.Finish(emit)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"u1", "big", "u2", "u3"}, ids); d != "" {
		t.Error(d)
	}
	if kept > 40<<10+evidence.MaxHiddenBytes {
		t.Errorf("%d bytes of text kept", kept)
	}
	if c := res.Counts; c.Oversized != 1 || c.Skipped != 1 || c.Errors != 0 || pos.Line != 5 {
		t.Errorf("counts %+v at %v", c, pos)
	}
	for i := range ids {
		if res.OffBranch.Has(i) {
			t.Errorf("%s is off the branch: a lost record cut it", ids[i])
		}
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 6*evidence.MaxRecordBytes {
		t.Errorf("%d MB allocated in all", total>>20)
	}
}

type repeat string

func (s repeat) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], s)
	}
	return n, nil
}

// A damaged line made to be dear is given up in good time.
func TestSalvageIsBounded(t *testing.T) {
	for _, line := range []string{
		strings.Repeat(`{"type":"x","a":`, 200_000),
		strings.Repeat(`[`, 1_000_000),
		strings.Repeat(`{`, 1_000_000),
		strings.Repeat(`{"a":[`, 9_000) + `"` + strings.Repeat("x", 1<<20),
		strings.Repeat("{}x", 500_000),
		`{"type":"user","uuid":"deep","message":{"role":"user","content":[{"type":"tool_use","input":` + strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000) + `}]}}`,
	} {
		data := line + "\n" + claudeLine(9, "null", "behind it") + "\n"
		got, err := read(claudeFile, []byte(data), Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got.all); n == 0 || got.all[n-1].Entry.ID != "u9" {
			t.Errorf("%.30q: %d entries", line, n)
		}
	}
}

// Splices that were seen in the field, and what must be found in them.
func TestSalvage(t *testing.T) {
	a, b, c := claudeLine(1, "null", "one {brace} \"quoted\" {\"type\":\"x\"}"), claudeLine(2, "u1", "two"), claudeLine(3, "u2", "three")
	stub := claudeLine(8, "u1", `a stub with {"type":"user","uuid":"no","message":1} in its text`)
	for name, x := range map[string]struct{ line, want string }{
		"no line end":        {a + b + c, "u1 u2 u3"},
		"spaces between":     {a + "  \t" + b, "u1 u2"},
		"carriage return":    {a + "\r" + b + "\r", "u1 u2"},
		"zeros between":      {a + "\x00\x00\x00" + b, "u1 u2"},
		"zeros around":       {"\x00\x00" + a + "\x00", "u1"},
		"stub in a string":   {stub[:90] + b, "u2"},
		"stub in a name":     {stub[:4] + b + c, "u2 u3"},
		"stub after a colon": {`{"type":"user","message":` + b + c, "u2 u3"},
		"stub in a literal":  {`{"type":"user","isMeta":tr` + b, "u2"},
		"stub of one brace":  {"{" + b, "u2"},
		"stub in an escape":  {`{"type":"user","x":"\u00` + b, "u2"},
		"tail of a record":   {`"}]}}` + b, "u2"},
		"words behind":       {a + "oops", "u1"},
		"stub behind":        {a + stub[:60], "u1"},
		"two stubs":          {stub[:70] + a[:50] + b, "u2"},
		"nothing whole":      {stub[:len(stub)-1], ""},
		"an array":           {"[" + b + "]", ""},
		"zeros in a record":  {a[:40] + "\x00\x00\x00\x00" + a[44:], ""},
	} {
		got, err := read(claudeFile, []byte(x.line+"\n"), Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, g := range got.all {
			ids = append(ids, g.Entry.ID)
		}
		if s := strings.Join(ids, " "); s != x.want {
			t.Errorf("%s: found %q, want %q", name, s, x.want)
		}
		if got.res.Counts.Malformed != 1 {
			t.Errorf("%s: counted %d times", name, got.res.Counts.Malformed)
		}
		checkEntries(t, claudeFile, []byte(x.line+"\n"), got)
	}
}

func TestStrings(t *testing.T) {
	for _, s := range []string{
		`""`, `"plain"`, `"a\nb\t\"c\"\\\/\b\f\r"`, `"\u00e9\u4e16"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83d\ud83d\ude00"`, `"\ud83dA"`,
		`"\\"`, `"\\\\\""`, "\"\xff\xfe x\xc3\"", "\"\xed\xa0\xbd\"", `"日本語"`, `"\u0000"`, "\"a\xffb\\n\xff\"",
	} {
		var want string
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatal(s, err)
		}
		if got := value(s).str(); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
		if end := stringEnd([]byte(s+`,"x"`), 0); end != len(s) {
			t.Errorf("%q: ends at %d", s, end)
		}
	}
}

// FuzzWalk holds the walk over JSON against the standard library's reading.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x",{"b":null}],"c\n":"\ud83d\ude00"}`))
	f.Add([]byte(`[[],{},[{"a":{}}],-1e9,true]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		left := 1 << 20
		var got []string
		texts(trim(b), &left, func([]byte) bool { return false }, func(v value) { got = append(got, v.str()) })
		var c checker
		v := trim(b)
		if n := quick(v); n >= 0 {
			if m, ok := c.slow(v); !ok || n != m {
				t.Fatalf("%q: quick says %d, jsontext %d %v", v, n, m, ok)
			}
		}
		if n, ok := c.value(v); !ok || n != len(v) {
			return
		}
		if end := valueEnd(v, 0); end != len(v) {
			t.Fatalf("%q: ends at %d, want %d", v, end, len(v))
		}
		var all []string
		value(v).strings(func(s string) bool { all = append(all, s); return true })
		var want, wantAll []string
		d := json.NewDecoder(bytes.NewReader(v))
		depth, deepest := 0, 0
		type frame struct{ object, name bool }
		var stack []frame
		for {
			tok, err := d.Token()
			if err != nil {
				break
			}
			isName := len(stack) > 0 && stack[len(stack)-1].object && stack[len(stack)-1].name
			if len(stack) > 0 && stack[len(stack)-1].object {
				stack[len(stack)-1].name = !stack[len(stack)-1].name
			}
			switch x := tok.(type) {
			case json.Delim:
				switch x {
				case '{', '[':
					stack = append(stack, frame{x == '{', true})
					depth++
					deepest = max(deepest, depth)
				default:
					stack = stack[:len(stack)-1]
					depth--
					if len(stack) > 0 && stack[len(stack)-1].object {
						stack[len(stack)-1].name = true
					}
				}
			case string:
				if isName {
					break
				}
				wantAll = append(wantAll, x)
				if x != "" {
					want = append(want, x)
				}
			}
		}
		if d := cmp.Diff(wantAll, all); d != "" {
			t.Errorf("%q, all strings:\n%s", v, d)
		}
		if deepest < 15 {
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%q:\n%s", v, d)
			}
		}
	})
}
