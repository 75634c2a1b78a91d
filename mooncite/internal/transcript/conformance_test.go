package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
)

// One suite for all origins. A fixture is a file below testdata/<origin>/, named as
// it would be named below a root; all words in them are invented.

var update = flag.Bool("update", false, "write the golden listings anew")

type given struct {
	Rec   Record // without its bytes
	Entry Entry
	Off   bool
}

type reading struct {
	all []given
	res Result
	pos Position
}

// read runs a parser over data, which begins at at.
func read(f File, data []byte, at Position, state []byte) (reading, error) {
	var out reading
	p, err := New(f, state)
	if err != nil {
		return out, err
	}
	emit := func(r *Record, e *Entry) error {
		rec := *r
		rec.Bytes = nil
		out.all = append(out.all, given{Rec: rec, Entry: *e, Off: e.Off})
		return nil
	}
	if out.pos, err = Scan(bytes.NewReader(data), f, at, p, emit); err != nil {
		return out, err
	}
	out.res, err = p.Finish(emit)
	for i := range out.all {
		out.all[i].Off = out.all[i].Off || out.res.OffBranch.Has(i)
	}
	return out, err
}

type fixture struct {
	file File
	data []byte
	path string
}

func fixtures(tb testing.TB) []fixture {
	tb.Helper()
	var out []fixture
	for _, row := range formats {
		if row.open == nil {
			continue // its parser is not here yet
		}
		root := filepath.Join("testdata", string(row.origin))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(p, ".golden") {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			f := File{row.origin, filepath.ToSlash(rel)}
			if s := ShapeOf(f); s == None || s == Packed {
				return nil
			}
			data, err := os.ReadFile(p)
			out = append(out, fixture{f, data, p})
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			tb.Fatal(err)
		}
	}
	if len(out) == 0 {
		tb.Fatal("no fixtures")
	}
	return out
}

// Which fixtures a test is about: documents are read whole, so there is nothing to resume
// in them; a long one cannot be cut at every byte.
func every(fixture) bool     { return true }
func inLines(x fixture) bool { return ShapeOf(x.file) != Document }
func short(x fixture) bool   { return len(x.data) <= 40<<10 }

func eachFixture(t *testing.T, of func(fixture) bool, do func(t *testing.T, x fixture)) {
	for _, x := range fixtures(t) {
		if !of(x) {
			continue
		}
		t.Run(string(x.file.Origin)+"/"+x.file.Rel, func(t *testing.T) { do(t, x) })
	}
}

func TestEntriesComeFromTheirRecord(t *testing.T) {
	eachFixture(t, every, func(t *testing.T, x fixture) {
		got, err := read(x.file, x.data, Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkEntries(t, x.file, x.data, got)
		golden(t, x.path+".golden", listing(got))
	})
}

// checkEntries holds what must be true of any entries, of whatever bytes.
func checkEntries(tb testing.TB, f File, data []byte, got reading) {
	tb.Helper()
	for _, g := range got.all {
		r := g.Rec
		if r.Start < 0 || r.End > int64(len(data)) || r.Start >= r.End || r.Line < 1 {
			tb.Fatalf("entry %s: range %d..%d at line %d", g.Entry.ID, r.Start, r.End, r.Line)
		}
		r.Bytes, r.checked = data[r.Start:r.End], false
		if sha256.Sum256(r.Bytes) != r.Digest {
			tb.Errorf("entry %s: digest is not that of its bytes", g.Entry.ID)
		}
		if want := int64(bytes.Count(data[:r.Start], []byte("\n")) + 1); ShapeOf(f) != Document && r.Line != want {
			tb.Errorf("entry %s: line %d, want %d", g.Entry.ID, r.Line, want)
		}
		if len(g.Entry.Spans) == 0 || !evidence.IsIdentifier(g.Entry.ID) || !evidence.IsKind(g.Entry.Kind) ||
			!evidence.IsIdentifier(g.Entry.Session) || g.Entry.Project == "" {
			tb.Errorf("entry lacks something: %+v", g.Entry)
		}
		again, err := Decode(f, &r)
		if err != nil {
			tb.Fatal(err)
		}
		i := slices.IndexFunc(again, func(e Entry) bool { return e.ID == g.Entry.ID })
		if i < 0 {
			tb.Errorf("entry %s is not what its record decodes to: %v", g.Entry.ID, again)
			continue
		}
		if d := cmp.Diff(g.Entry.Spans, again[i].Spans); d != "" {
			tb.Errorf("entry %s: spans of parser and Decode differ:\n%s", g.Entry.ID, d)
		}
		texts := stringsOf(r.Bytes)
		for n, s := range g.Entry.Spans {
			if _, ok := evidence.ParseRole(string(s.Role)); !ok || !utf8.ValidString(s.Text) {
				tb.Errorf("entry %s span %d: role %q, text %.100q", g.Entry.ID, n, s.Role, s.Text)
			}
			if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, s.Text) }) {
				tb.Errorf("entry %s span %d is in no value of its record: %.200q", g.Entry.ID, n, s.Text)
			}
		}
	}
}

// stringsOf gives every string in a JSON value, and in JSON inside its strings.
func stringsOf(b []byte) (all []string) {
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		switch v := v.(type) {
		case string:
			all = append(all, v)
			var inner any
			if depth < 3 && strings.ContainsAny(v, "{[") && json.Unmarshal([]byte(v), &inner) == nil {
				walk(inner, depth+1)
			}
		case []any:
			for _, e := range v {
				walk(e, depth)
			}
		case map[string]any:
			for _, e := range v {
				walk(e, depth)
			}
		}
	}
	var v any
	if json.Unmarshal(b, &v) == nil {
		walk(v, 0)
	}
	return all
}

func listing(got reading) string {
	var b strings.Builder
	for _, g := range got.all {
		e := g.Entry
		fmt.Fprintf(&b, "%d [%d,%d) %s parent=%s session=%s project=%s kind=%s", g.Rec.Line, g.Rec.Start, g.Rec.End, e.ID, e.Parent, e.Session, e.Project, e.Kind)
		if e.Time != evidence.NoTime {
			fmt.Fprintf(&b, " time=%d", e.Time)
		}
		if e.Copy {
			b.WriteString(" copy")
		}
		if g.Off {
			b.WriteString(" off")
		}
		b.WriteByte('\n')
		for i, s := range e.Spans {
			text := s.Text
			if len(text) > 160 {
				text = fmt.Sprintf("%s… (%d bytes)", text[:100], len(text))
			}
			fmt.Fprintf(&b, "    %d %s %s class %d: %q\n", i, s.Role, s.Kind, s.Class, text)
		}
	}
	fmt.Fprintf(&b, "info %+v\n", got.res.Info)
	c := got.res.Counts
	fmt.Fprintf(&b, "lines %d records %d eligible %d skipped %d malformed %d oversized %d errors %d\n", got.pos.Line, c.Records, c.Eligible, c.Skipped, c.Malformed, c.Oversized, c.Errors)
	names := make([]string, 0, len(c.Unknown))
	for n := range c.Unknown {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "unknown %q %d\n", n, c.Unknown[n])
	}
	fmt.Fprintf(&b, "offset %d\n", got.pos.Offset)
	return b.String()
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("entries changed (-golden +now):\n%s", d)
	}
}

// boundaries gives the offsets behind every line end, and the beginning.
func boundaries(data []byte) []int {
	at := []int{0}
	for i, c := range data {
		if c == '\n' {
			at = append(at, i+1)
		}
	}
	return at
}

func TestResume(t *testing.T) {
	eachFixture(t, inLines, func(t *testing.T, x fixture) {
		whole, err := read(x.file, x.data, Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, cut := range boundaries(x.data) {
			checkResume(t, x.file, x.data, cut, whole)
		}
		// All cuts in one chain, as a file that grows under the reader.
		var all []given
		var last reading
		var state []byte
		cuts := boundaries(x.data)
		for i, from := range cuts {
			to := len(x.data)
			if i+1 < len(cuts) {
				to = cuts[i+1]
			}
			next, err := read(x.file, x.data[from:to], last.pos, state)
			if errors.Is(err, ErrRestart) || err == nil && next.res.State == nil {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, next.all...)
			if next.res.Relabel { // as the contract asks
				if next, err = read(x.file, x.data[:to], Position{}, nil); err != nil {
					t.Fatal(err)
				}
			}
			last, state = next, next.res.State
			if len(state) > 16<<10 {
				t.Errorf("state of %d bytes", len(state))
			}
		}
		if d := cmp.Diff(plain(whole.all), plain(firsts(all))); d != "" {
			t.Errorf("line by line (-whole +chain):\n%s", d)
		}
		if d := cmp.Diff(whole.res.Info, last.res.Info); d != "" {
			t.Errorf("line by line, info (-whole +chain):\n%s", d)
		}
	})
}

func checkResume(tb testing.TB, f File, data []byte, cut int, whole reading) {
	tb.Helper()
	head, err := read(f, data[:cut], Position{}, nil)
	if err != nil {
		tb.Fatalf("cut at %d: %v", cut, err)
	}
	if head.res.State == nil {
		return
	}
	tail, err := read(f, data[cut:], head.pos, head.res.State)
	if errors.Is(err, ErrRestart) {
		return
	}
	if err != nil {
		tb.Fatalf("cut at %d, resumed: %v", cut, err)
	}
	joined := append(slices.Clone(head.all), tail.all...)
	once := firsts(joined)
	if c := whole.res.Counts; c.Errors > c.Malformed {
		// Ids came twice, and not all of them with text: what the index cannot know
		// of may come in addition, nothing may be missing.
		have := map[string]bool{}
		for _, s := range plain(once) {
			have[s] = true
		}
		for _, s := range plain(whole.all) {
			if !have[s] {
				tb.Errorf("cut at %d: lost %s", cut, s)
			}
		}
		return
	}
	if d := cmp.Diff(plain(whole.all), plain(once)); d != "" {
		tb.Errorf("cut at %d (-whole +resumed):\n%s", cut, d)
	}
	if len(once) != len(joined) {
		return // an id came twice: the index sees that, not the parser
	}
	if d := cmp.Diff(whole.res.Info, tail.res.Info); d != "" && !tail.res.Relabel {
		tb.Errorf("cut at %d, info (-whole +resumed):\n%s", cut, d)
	}
	if tail.pos != whole.pos {
		tb.Errorf("cut at %d: position %v, want %v", cut, tail.pos, whole.pos)
	}
	if !tail.res.Relabel {
		if d := cmp.Diff(offs(whole.all), offs(joined)); d != "" {
			tb.Errorf("cut at %d, off the branch (-whole +resumed):\n%s", cut, d)
		}
	}
}

// firsts leaves out entries whose id came before, as the index does.
func firsts(all []given) (out []given) {
	seen := map[string]bool{}
	for _, g := range all {
		if key := g.Entry.Session + "\x00" + g.Entry.ID; !seen[key] {
			seen[key] = true
			out = append(out, g)
		}
	}
	return out
}

// plain is the entries by place, without their branch.
func plain(all []given) []string {
	out := make([]string, len(all))
	for i, g := range all {
		g.Off, g.Rec.checked = false, false
		out[i] = fmt.Sprintf("%09d %+v", g.Rec.Start, g)
	}
	sort.Strings(out)
	return out
}

func offs(all []given) (out []string) {
	for _, g := range all {
		if g.Off {
			out = append(out, g.Entry.ID)
		}
	}
	sort.Strings(out)
	return out
}

func TestCutAnywhere(t *testing.T) {
	eachFixture(t, short, func(t *testing.T, x fixture) {
		shape := ShapeOf(x.file)
		step := 1 + len(x.data)/2000
		for cut := 0; cut <= len(x.data); cut += step {
			got, err := read(x.file, x.data[:cut], Position{}, nil)
			if shape == Document {
				continue
			}
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if end := int64(bytes.LastIndexByte(x.data[:cut], '\n') + 1); got.pos.Offset != end {
				t.Fatalf("cut at %d: position %d, want %d", cut, got.pos.Offset, end)
			}
		}
	})
}

// TestDamage hurts a file at random places and looks for the records that were not
// touched.
func TestDamage(t *testing.T) {
	eachFixture(t, func(x fixture) bool { return inLines(x) && short(x) }, func(t *testing.T, x fixture) {
		whole, err := read(x.file, x.data, Position{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(1, 2))
		for round := range 150 {
			hurt, from, to, ok := damage(rnd, x.data)
			if !ok {
				continue
			}
			got, err := read(x.file, hurt, Position{}, nil)
			if err != nil {
				t.Fatalf("round %d: %v\n%q", round, err, hurt)
			}
			checkEntries(t, x.file, hurt, got)
			have := map[string]bool{}
			for _, g := range got.all {
				have[key(g)] = true
			}
			for _, g := range whole.all {
				touched := int(g.Rec.Start) < to && int(g.Rec.End) > from
				if !touched && !strings.HasPrefix(g.Entry.Kind, "queue") && !have[key(g)] {
					t.Fatalf("round %d: bytes %d..%d hurt, record %s at %d..%d lost\n%q", round, from, to, g.Entry.ID, g.Rec.Start, g.Rec.End, hurt)
				}
			}
		}
	})
}

func key(g given) string {
	id := g.Entry.ID
	if strings.HasPrefix(id, "line-") {
		id = "line"
	}
	return fmt.Sprint(id, g.Entry.Spans)
}

// damage returns data hurt somewhere in from..to of the original; not ok when the
// result is another whole record, which may rightly change how others are read.
func damage(rnd *rand.Rand, data []byte) (hurt []byte, from, to int, ok bool) {
	if len(data) == 0 {
		return nil, 0, 0, false
	}
	at := rnd.IntN(len(data))
	switch rnd.IntN(5) {
	case 0: // a byte changed
		if data[at] == '\n' {
			return nil, 0, 0, false
		}
		hurt, from, to = slices.Clone(data), at, at+1
		hurt[at] ^= byte(1 + rnd.IntN(255))
		if hurt[at] == '\n' {
			hurt[at] = 0
		}
	case 1: // NUL bytes written over
		n := min(1+rnd.IntN(60), len(data)-at)
		hurt, from, to = slices.Clone(data), at, at+n
		for i := at; i < at+n; i++ {
			hurt[i] = 0
		}
	case 2: // a line end lost
		k := bytes.IndexByte(data[at:], '\n')
		if k < 0 || bytes.IndexByte(data[at+k+1:], '\n') < 0 {
			return nil, 0, 0, false
		}
		return slices.Delete(slices.Clone(data), at+k, at+k+1), 0, 0, true
	case 3: // a record cut off, and the next one behind it on the same line
		k := bytes.IndexByte(data[at:], '\n')
		if k < 0 || bytes.IndexByte(data[at+k+1:], '\n') < 0 {
			return nil, 0, 0, false
		}
		return slices.Delete(slices.Clone(data), at, at+k+1), at, at + k, true
	case 4: // bytes from elsewhere put in
		hurt = slices.Insert(slices.Clone(data), at, []byte("\x00\x00}{\"\xff")...)
		from, to = at, at+1
	}
	b := bytes.LastIndexByte(data[:at], '\n') + 1
	e := bytes.IndexByte(hurt[at:], '\n')
	if e < 0 {
		e = len(hurt) - at
	}
	line := bytes.TrimLeft(hurt[b:at+e], "\xef\xbb\xbf")
	return hurt, from, to, !json.Valid(line)
}
