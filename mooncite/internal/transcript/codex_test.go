package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"localmcp/mooncite/internal/evidence"
)

// A gotEntry is an emitted entry with the record it came from.
type gotEntry struct {
	rec   Record
	entry Entry
}

type gotFile struct {
	entries []gotEntry
	res     Result
	err     error
}

// cxRecords cuts lines as a reader would.
func cxRecords(data []byte) []Record {
	var out []Record
	at, line := int64(0), int64(0)
	for len(data) > 0 {
		n := bytes.IndexByte(data, '\n')
		rest := n + 1
		if n < 0 {
			n, rest = len(data), len(data)
		}
		line++
		if b := data[:n]; len(bytes.TrimSpace(b)) > 0 {
			out = append(out, Record{Line: line, Start: at, End: at + int64(n), Bytes: b, Digest: sha256.Sum256(b)})
		}
		data, at = data[rest:], at+int64(rest)
	}
	return out
}

// cxFeed gives records to a parser, which may not keep their bytes.
func cxFeed(p Parser, recs []Record, got *gotFile) {
	emit := func(r *Record, e *Entry) error {
		c := *r
		c.Bytes = slices.Clone(r.Bytes)
		got.entries = append(got.entries, gotEntry{c, *e})
		return nil
	}
	var buf []byte
	for _, r := range recs {
		if r.Bytes[0] != '{' || !json.Valid(bytes.ToValidUTF8(r.Bytes, []byte("?"))) {
			p.Damaged(r.Line, r.Start, r.End-r.Start, false)
			continue
		}
		buf = append(buf[:0], r.Bytes...)
		r.Bytes = buf
		if got.err = p.Record(&r, emit); got.err != nil {
			return
		}
		for i := range buf {
			buf[i] = 'x'
		}
	}
	got.res, got.err = p.Finish(emit)
}

// cxRead reads a whole file of any shape.
func cxRead(t testing.TB, f File, data []byte) *gotFile {
	t.Helper()
	got := new(gotFile)
	p, err := New(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	switch ShapeOf(f) {
	case Packed:
		r, err := Unpack(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if data, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		cxFeed(p, cxRecords(data), got)
	case Document:
		emit := func(r *Record, e *Entry) error {
			c := *r
			c.Bytes = slices.Clone(r.Bytes)
			got.entries = append(got.entries, gotEntry{c, *e})
			return nil
		}
		if _, got.err = scanDocument(bytes.NewReader(data), f, Position{}, p, emit); got.err == nil {
			got.res, got.err = p.Finish(emit)
		}
	default:
		cxFeed(p, cxRecords(data), got)
	}
	return got
}

// cxShow writes entries as a reader of a test likes to see them.
func cxShow(got *gotFile) string {
	var b strings.Builder
	for i, g := range got.entries {
		mark := ""
		if g.entry.Copy {
			mark += " copy"
		}
		if g.entry.Off || got.res.OffBranch.Has(i) {
			mark += " off"
		}
		fmt.Fprintf(&b, "%d %s%s\n", g.rec.Line, g.entry.Kind, mark)
		for _, s := range g.entry.Spans {
			kind := ""
			if s.Kind != "" {
				kind = "/" + s.Kind
			}
			fmt.Fprintf(&b, "  %s%s %d %q\n", s.Role, kind, s.Class, s.Text)
		}
	}
	return b.String()
}

func cxFixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "codex", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// cxStrings gives every string in a record, those inside JSON texts too.
func cxStrings(raw []byte) []string {
	var out []string
	var visit func(v any, depth int)
	visit = func(v any, depth int) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
			var in any
			if depth < 3 && json.Unmarshal([]byte(v), &in) == nil {
				visit(in, depth+1)
			}
		case []any:
			for _, e := range v {
				visit(e, depth)
			}
		case map[string]any:
			for _, e := range v {
				visit(e, depth)
			}
		}
	}
	var v any
	if json.Unmarshal(raw, &v) == nil {
		visit(v, 0)
	}
	return out
}

// cxCheck holds what must be true of every emitted entry.
func cxCheck(t *testing.T, f File, data []byte, got *gotFile) {
	t.Helper()
	ids := map[string]bool{}
	for _, g := range got.entries {
		r, e := g.rec, g.entry
		if !bytes.Equal(data[r.Start:r.End], r.Bytes) || sha256.Sum256(r.Bytes) != r.Digest {
			t.Errorf("line %d: range and digest are not those of the bytes", r.Line)
		}
		if want := int64(1 + bytes.Count(data[:r.Start], []byte{'\n'})); r.Line != want {
			t.Errorf("record at %d: line %d, want %d", r.Start, r.Line, want)
		}
		if !evidence.IsIdentifier(e.ID) || !evidence.IsIdentifier(e.Session) || !evidence.IsKind(e.Kind) || e.Project == "" {
			t.Errorf("line %d: bad identity %+v", r.Line, e)
		}
		if key := e.Session + "\x00" + e.ID; ids[key] {
			t.Errorf("line %d: id %q twice", r.Line, e.ID)
		} else {
			ids[key] = true
		}
		values := cxStrings(r.Bytes)
		for _, s := range e.Spans {
			if !slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, s.Text) }) {
				t.Errorf("line %d: %q is in no value of the record", r.Line, s.Text)
			}
		}
		alone, err := Decode(f, &r)
		if err != nil {
			t.Errorf("line %d: %v", r.Line, err)
		}
		i := slices.IndexFunc(alone, func(a Entry) bool { return a.ID == e.ID })
		if i < 0 {
			t.Errorf("line %d: Decode does not give %q", r.Line, e.ID)
		} else if d := cmp.Diff(e.Spans, alone[i].Spans); d != "" {
			t.Errorf("line %d: Decode differs: %s", r.Line, d)
		}
	}
}

var updateCodex = flag.Bool("update-codex", false, "write the expectations of the Codex fixtures anew")

// TestCodexFixtures compares what every fixture gives with testdata/codex/want.txt.
func TestCodexFixtures(t *testing.T) {
	var b strings.Builder
	for _, name := range cxNames(t) {
		f := File{Origin: evidence.Codex, Rel: "2026/03/01/" + name}
		data := cxFixture(t, name)
		got := cxRead(t, f, data)
		if got.err != nil {
			t.Fatalf("%s: %v", name, got.err)
		}
		cxCheck(t, f, data, got)
		i, c := got.res.Info, got.res.Counts
		fmt.Fprintf(&b, "== %s\nsession %s project %s subagent %v parent %q title %q compaction %d\nrecords %d skipped %d unknown %v\n%s\n",
			name, i.Session, i.Project, i.Subagent, i.Parent, i.Title, i.CompactionLine, c.Records, c.Skipped, c.Unknown, cxShow(got))
	}
	file := filepath.Join("testdata", "codex", "want.txt")
	if *updateCodex {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Error(d)
	}
}

func cxNames(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/codex/*.json*")
	if err != nil || len(all) == 0 {
		t.Fatal("no fixtures", err)
	}
	var out []string
	for _, n := range all {
		if !strings.HasSuffix(n, ".golden") { // another suite's
			out = append(out, filepath.Base(n))
		}
	}
	return out
}

func TestCodexShape(t *testing.T) {
	for rel, want := range map[string]Shape{
		"2026/03/01/rollout-x.jsonl": Lines, "any.jsonl": Lines, "rollout-y.jsonl.zst": Packed,
		"rollout-2025-06-20-z.json": Document, "auth.json": None, "history.jsonl": None, "a/session_index.jsonl": None,
		"history.jsonl.zst": None, "x.JSONL": None, "rollout-x.jsonl.tmp": None, "": None, "config.toml": None,
	} {
		if got := ShapeOf(File{Origin: evidence.Codex, Rel: rel}); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
}

// cxResume checks that a reader stopped after k records and resumed gives what one
// that never stopped gives, and returns how often it had to start anew.
func cxResume(t *testing.T, f File, recs []Record) int {
	t.Helper()
	whole := new(gotFile)
	p, _ := New(f, nil)
	cxFeed(p, recs, whole)
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	restarts := 0
	for k := range recs {
		first := new(gotFile)
		p, _ := New(f, nil)
		cxFeed(p, recs[:k], first)
		if first.err != nil {
			continue
		}
		second := new(gotFile)
		p, err := New(f, slices.Clone(first.res.State))
		if err != nil {
			t.Fatal(err)
		}
		cxFeed(p, recs[k:], second)
		if errors.Is(second.err, ErrRestart) {
			restarts++
			continue
		}
		if second.err != nil {
			t.Fatalf("resumed at %d: %v", k, second.err)
		}
		both := append(slices.Clone(first.entries), second.entries...)
		if !reflect.DeepEqual(whole.entries, both) && len(both)+len(whole.entries) > 0 {
			t.Fatalf("resumed at %d: %s", k, cmp.Diff(whole.entries, both, cmp.AllowUnexported(gotEntry{}, Record{})))
		}
		if d := cmp.Diff(whole.res.Info, second.res.Info); d != "" {
			t.Fatalf("resumed at %d: %s", k, d)
		}
		if string(whole.res.State) != string(second.res.State) && len(recs) < k {
			t.Fatalf("resumed at %d: state differs", k)
		}
		n := len(first.entries)
		for i := range whole.entries {
			off := i < n && first.res.OffBranch.Has(i) || i >= n && second.res.OffBranch.Has(i-n)
			if off != whole.res.OffBranch.Has(i) && !(i < n && second.res.Relabel) {
				t.Fatalf("resumed at %d: branch of entry %d differs", k, i)
			}
		}
		if a, b := first.res.Counts, second.res.Counts; a.Records+b.Records != whole.res.Counts.Records ||
			a.Eligible+b.Eligible != whole.res.Counts.Eligible || a.Errors+b.Errors != whole.res.Counts.Errors {
			t.Fatalf("resumed at %d: counts %+v and %+v of %+v", k, a, b, whole.res.Counts)
		}
	}
	return restarts
}

func TestCodexResume(t *testing.T) {
	for _, name := range cxNames(t) {
		f := File{Origin: evidence.Codex, Rel: name}
		if ShapeOf(f) != Lines {
			continue
		}
		recs := cxRecords(cxFixture(t, name))
		if n := cxResume(t, f, recs); n > len(recs)/2 {
			t.Errorf("%s: %d restarts in %d places", name, n, len(recs))
		}
	}
}

// TestCodexRandom puts random rollouts through the resume check.
func TestCodexRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		var b strings.Builder
		b.WriteString(`{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"r","cwd":"/w/r"}}` + "\n")
		for i := range 10 + rng.IntN(80) {
			word := fmt.Sprintf("w%d", rng.IntN(6))
			line := []string{
				`{"type":"event_msg","payload":{"type":"user_message","message":"%s"}}`,
				`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%s"}]}}`,
				`{"type":"event_msg","payload":{"type":"agent_message","message":"%s"}}`,
				`{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%s"}]}}`,
				`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"AgentMessage","content":[{"type":"Text","text":"%s"}]}}}`,
				`{"type":"response_item","payload":{"type":"function_call_output","call_id":"%s","output":"o"}}`,
				`{"type":"event_msg","payload":{"type":"exec_command_end","call_id":"%s","command":["c"],"aggregated_output":"o"}}`,
				`{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"%s"}}`,
				`{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1,"x":"%s"}}`,
				`{"type":"event_msg","payload":{"type":"token_count","x":"%s"}}`,
			}[min(rng.IntN(14), 9)]
			fmt.Fprintf(&b, strings.Replace(line, "{", fmt.Sprintf(`{"n":%d,`, i), 1)+"\n", word)
		}
		recs := cxRecords([]byte(b.String()))
		cxResume(t, File{Origin: evidence.Codex, Rel: "r.jsonl"}, recs)
	}
}

// TestCodexDamage flips, cuts and repeats bytes: nothing may panic, and what is
// emitted must still hold.
func TestCodexDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, name := range cxNames(t) {
		f := File{Origin: evidence.Codex, Rel: name}
		clean := cxFixture(t, name)
		for range 200 {
			data := cxSpoil(rng, clean)
			got := cxRead(t, f, data)
			var un *ErrUnsupported
			if got.err != nil && !errors.As(got.err, &un) {
				t.Fatal(got.err)
			}
			for _, g := range got.entries {
				if sha256.Sum256(data[g.rec.Start:g.rec.End]) != g.rec.Digest {
					t.Fatal("range of a damaged file")
				}
			}
		}
		// The parser may meet what the reader should have kept from it.
		for range 200 {
			r := Record{Line: 1, Bytes: cxSpoil(rng, clean)}
			p, _ := New(f, nil)
			if err := p.Record(&r, func(*Record, *Entry) error { return nil }); err != nil {
				t.Fatal(err)
			}
			Decode(f, &r)
		}
	}
}

func cxSpoil(rng *rand.Rand, clean []byte) []byte {
	data := slices.Clone(clean)
	for range 1 + rng.IntN(4) {
		if len(data) == 0 {
			break
		}
		i := rng.IntN(len(data))
		switch rng.IntN(4) {
		case 0:
			data[i] = byte(rng.IntN(256))
		case 1:
			data = data[:i]
		case 2:
			data = append(data[:i:i], data[min(len(data), i+rng.IntN(40)):]...)
		case 3:
			data = append(data[:i:i], append([]byte("{}[]\",:\\\n"[rng.IntN(9):]), data[i:]...)...)
		}
	}
	return data
}

func TestCodexStateDamage(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "envelope.jsonl"}
	got := cxRead(t, f, cxFixture(t, "envelope.jsonl"))
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		if p, err := New(f, cxSpoil(rng, got.res.State)); err == nil {
			cxFeed(p, cxRecords(cxFixture(t, "rollback.jsonl")), new(gotFile))
		}
	}
}

func TestCodexForeign(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "notes.jsonl"}
	got := cxRead(t, f, []byte("{\"level\":\"info\",\"msg\":\"x\"}\n{\"a\":1}\n"))
	var un *ErrUnsupported
	if !errors.As(got.err, &un) {
		t.Error("a foreign file is", got.err)
	}
	if got := cxRead(t, f, nil); got.err != nil || len(got.entries) != 0 {
		t.Error("an empty file is", got.err)
	}
}

// TestCodexPacked reads the same rollout plain and packed.
func TestCodexPacked(t *testing.T) {
	data := cxFixture(t, "envelope.jsonl")
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := cxRead(t, File{Origin: evidence.Codex, Rel: "a.jsonl"}, data)
	b := cxRead(t, File{Origin: evidence.Codex, Rel: "a.jsonl.zst"}, enc.EncodeAll(data, nil))
	if d := cmp.Diff(cxShow(a), cxShow(b)); d != "" {
		t.Error(d)
	}
}

// TestCodexSameLine meets the same record twice on one line, as a splice leaves it.
func TestCodexSameLine(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	b := []byte(`{"type":"event_msg","payload":{"type":"user_message","message":"hi"}}`)
	p, _ := New(f, nil)
	n := 0
	for range 100 {
		r := Record{Line: 1, Bytes: b, Digest: sha256.Sum256(b)}
		if err := p.Record(&r, func(*Record, *Entry) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("%d entries of one id", n)
	}
}

// TestCodexWindow holds the memory of a rollout whose messages have no events.
func TestCodexWindow(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	pr, _ := New(f, nil)
	p := pr.(*codexParser)
	at, seen := int64(0), 0
	for i := range 250 {
		b := fmt.Appendf(nil, `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%d %s"}]}}`, i, strings.Repeat("long ", 50000))
		r := Record{Line: int64(i + 1), Start: at, End: at + int64(len(b)), Bytes: b, Digest: sha256.Sum256(b)}
		at = r.End + 1
		if err := p.Record(&r, func(*Record, *Entry) error { seen++; return nil }); err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, x := range p.queue {
			held += len(x.rec.Bytes)
		}
		if held > codexWindowBytes+2*len(b) {
			t.Fatalf("holds %d bytes", held)
		}
	}
	if seen < 200 {
		t.Errorf("%d emitted", seen)
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`"a\n\t\"\\\/\b\f\r"`: "a\n\t\"\\/\b\f\r", `"\u0041\u00e9\ud83d\ude00"`: "Aé😀", `"\ud83d"`: "\uFFFD",
		`"\ud83dx\u0042"`: "\uFFFDxB", `"\ud83d\ud83d\ude00"`: "\uFFFD😀", "\"\xff\\n\"": "\uFFFD\n", `""`: "", `12`: "", "\"\xff\xfe\"": "\uFFFD\uFFFD",
	} {
		if got := value(in).str(); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// cxBench is a rollout of ordinary proportions.
func cxBench() []byte {
	var b bytes.Buffer
	out := strings.Repeat(`total 12 of the build\n\tok  example/pkg 0.21s with \"quotes\" and more text that a tool prints\n`, 30)
	say := strings.Repeat(`The change is small, and the tests of the package pass again. `, 12)
	for i := range 400 {
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"%d %s"}]}}`+"\n", i, say)
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"event_msg","payload":{"type":"agent_message","message":"%d %s"}}`+"\n", i, say)
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"bash\",\"-lc\",\"go test ./pkg/%d\"],\"workdir\":\"/w/x\"}","call_id":"c%d"}}`+"\n", i, i)
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c%d","output":"%s"}}`+"\n", i, out)
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"cached_input_tokens":44,"output_tokens":12,"reasoning_output_tokens":0,"total_tokens":1234},"model_context_window":258400},"rate_limits":{"primary":{"used_percent":12.0,"window_minutes":300,"resets_in_seconds":12345}}}}`+"\n", i)
		fmt.Fprintf(&b, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"%s"}}`+"\n", strings.Repeat("QUJDREVG", 150))
	}
	return b.Bytes()
}

func BenchmarkCodex(b *testing.B) {
	data := cxBench()
	recs := cxRecords(data)
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			p, _ := New(File{Origin: evidence.Codex, Rel: "a.jsonl"}, nil)
			n := 0
			emit := func(*Record, *Entry) error { n++; return nil }
			for i := range recs {
				if err := p.Record(&recs[i], emit); err != nil {
					b.Fatal(err)
				}
			}
			p.Finish(emit)
			if n != 1200 {
				b.Fatal(n)
			}
		}
	})
	b.Run("stdlib", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			for i := range recs {
				var v map[string]any
				if err := json.Unmarshal(recs[i].Bytes, &v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// FuzzCodex wants no panic, true identities and a resumable state from any bytes.
func FuzzCodex(f *testing.F) {
	for _, name := range cxNames(f) {
		f.Add(cxFixture(f, name), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint8) {
		file := File{Origin: evidence.Codex, Rel: "a.jsonl"}
		recs := cxRecords(data)
		got := new(gotFile)
		p, _ := New(file, nil)
		cxFeed(p, recs, got)
		cxRanges(t, data, got)
		k := min(int(at), len(recs))
		first, second := new(gotFile), new(gotFile)
		p, _ = New(file, nil)
		if cxFeed(p, recs[:k], first); first.err != nil || got.err != nil {
			return
		}
		p, err := New(file, first.res.State)
		if err != nil {
			t.Fatal(err)
		}
		if cxFeed(p, recs[k:], second); errors.Is(second.err, ErrRestart) {
			return
		}
		if second.err != nil {
			t.Fatal(second.err)
		}
		both := append(slices.Clone(first.entries), second.entries...)
		if !reflect.DeepEqual(got.entries, both) && len(got.entries)+len(both) > 0 {
			t.Fatal(cmp.Diff(got.entries, both, cmp.AllowUnexported(gotEntry{}, Record{})))
		}
	})
}

func cxLines(lines ...string) []Record { return cxRecords([]byte(strings.Join(lines, "\n") + "\n")) }

const (
	cxHead  = `{"timestamp":"2026-03-01T10:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/w/s"}}`
	cxItem0 = `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"said"}]}}`
	cxEvent = `{"type":"event_msg","payload":{"type":"agent_message","message":"said"}}`
	cxUser  = `{"type":"event_msg","payload":{"type":"user_message","message":"asked"}}`
	cxUndo  = `{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`
)

// TestCodexLateEvent: the double of what was already given out arrives later.
func TestCodexLateEvent(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	first := new(gotFile)
	p, _ := New(f, nil)
	cxFeed(p, cxLines(cxHead, cxItem0), first)
	if len(first.entries) != 1 {
		t.Fatal(cxShow(first))
	}
	for line, want := range map[string]error{cxEvent: ErrRestart, cxUser: nil} {
		second := new(gotFile)
		p, err := New(f, first.res.State)
		if err != nil {
			t.Fatal(err)
		}
		if cxFeed(p, cxLines(line), second); !errors.Is(second.err, want) {
			t.Errorf("%s: %v", line, second.err)
		}
	}
	// The other way round the later one is dropped, as in one go.
	first = new(gotFile)
	p, _ = New(f, nil)
	cxFeed(p, cxLines(cxHead, cxEvent), first)
	second := new(gotFile)
	p, _ = New(f, first.res.State)
	if cxFeed(p, cxLines(cxItem0), second); second.err != nil || len(second.entries) != 0 {
		t.Error(second.err, cxShow(second))
	}
}

// TestCodexLateDirectory: a file without a header tells its working directory after
// the end at which an entry was given out; read in one go, the entry would have waited.
func TestCodexLateDirectory(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	cwd := `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/w/s</cwd>\n</environment_context>"}]}}`
	end := `{"type":"event_msg","payload":{"type":"task_complete"}}`
	for _, c := range []struct {
		before []string
		want   error
	}{
		{[]string{cxItem0}, ErrRestart},
		{[]string{cxItem0, end, cxUser}, nil}, // decided: it left without one in one go too
	} {
		p, _ := New(f, nil)
		first, second := new(gotFile), new(gotFile)
		cxFeed(p, cxLines(c.before...), first)
		p, err := New(f, first.res.State)
		if err != nil {
			t.Fatal(err)
		}
		if cxFeed(p, cxLines(cwd), second); !errors.Is(second.err, c.want) {
			t.Errorf("after %d records: %v, want %v", len(c.before), second.err, c.want)
		}
	}
}

// TestCodexUndoneBefore undoes a turn that an earlier read gave out.
func TestCodexUndoneBefore(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	first, second := new(gotFile), new(gotFile)
	p, _ := New(f, nil)
	cxFeed(p, cxLines(cxHead, cxUser, cxEvent, strings.Replace(cxUser, "asked", "asked more", 1)), first)
	p, _ = New(f, first.res.State)
	again := cxLines(strings.Replace(cxEvent, "said", "said more", 1), cxUndo, strings.Replace(cxUser, "asked", "asked better", 1))
	if cxFeed(p, again, second); second.err != nil {
		t.Fatal(second.err)
	}
	if !second.res.Relabel || !second.res.OffBranch.Has(0) || second.res.OffBranch.Has(1) {
		t.Errorf("%+v", second.res)
	}
	if got, want := second.entries[1].entry.Parent, first.entries[1].entry.ID; got != want {
		t.Errorf("the turn behind the undone one hangs on %q, want %q", got, want)
	}
	if second.res.Info.LastEntry != second.entries[1].entry.ID {
		t.Error("leaf", second.res.Info.LastEntry)
	}
}

// TestCodexTwins: the same words said twice are two turns, each with its double.
func TestCodexTwins(t *testing.T) {
	f := File{Origin: evidence.Codex, Rel: "a.jsonl"}
	for _, lines := range [][]string{
		{cxHead, cxItem0, cxEvent, cxItem0, cxEvent}, {cxHead, cxEvent, cxItem0, cxEvent, cxItem0},
		{cxHead, cxItem0, cxItem0, cxEvent, cxEvent}, {cxHead, cxEvent, cxEvent, cxItem0, cxItem0},
	} {
		got := new(gotFile)
		p, _ := New(f, nil)
		cxFeed(p, cxLines(lines...), got)
		if len(got.entries) != 2 || got.entries[0].entry.Kind != "agent_message" || got.entries[1].entry.Kind != "agent_message" {
			t.Errorf("%s", cxShow(got))
		}
	}
}

func TestMachineText(t *testing.T) {
	for in, want := range map[string]bool{
		"<environment_context>x</environment_context>":                                              true,
		" <user_instructions>\nx\n</user_instructions>\n":                                           true,
		"<turn_aborted>a</turn_aborted>\n<environment_context>b</environment_context>":              true,
		"# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>x</INSTRUCTIONS>":                         true,
		"# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>say </INSTRUCTIONS> or so</INSTRUCTIONS>": true,
		"<environment_context>x</environment_context> and what I say":                               false,
		"what is <environment_context>x</environment_context>":                                      false,
		"<environment_context> is open":                                                             false,
		"# AGENTS.md instructions are missing":                                                      false,
		"<div>x</div>":                                                                              false,
		"":                                                                                          false,
		"hello":                                                                                     false,
	} {
		if got := isMachineText(in); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}
