package transcript

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
)

var updateChatGPT = flag.Bool("update-chatgpt", false, "write the expectations of the ChatGPT fixtures anew")

func gptFixtures(t testing.TB) map[string][]byte {
	t.Helper()
	all, err := filepath.Glob("testdata/chatgpt/*/*.json")
	if err != nil || len(all) == 0 {
		t.Fatal("no fixtures", err)
	}
	out := map[string][]byte{}
	for _, n := range all {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel("testdata/chatgpt", n)
		out[filepath.ToSlash(rel)] = data
	}
	return out
}

// TestChatGPTFixtures compares what every fixture gives with testdata/chatgpt/want.txt.
func TestChatGPTFixtures(t *testing.T) {
	var b strings.Builder
	fixtures := gptFixtures(t)
	for _, name := range gptNames(fixtures) {
		f := File{Origin: evidence.ChatGPT, Rel: name}
		data := fixtures[name]
		got := cxRead(t, f, data)
		if got.err != nil {
			t.Fatalf("%s: %v", name, got.err)
		}
		cxCheck(t, f, data, got)
		i, c := got.res.Info, got.res.Counts
		fmt.Fprintf(&b, "== %s\nsession %q project %q title %q\nrecords %d eligible %d skipped %d malformed %d unknown %v\n",
			name, i.Session, i.Project, i.Title, c.Records, c.Eligible, c.Skipped, c.Malformed, c.Unknown)
		for _, g := range got.entries {
			e := g.entry
			mark := ""
			if e.Off {
				mark = " off"
			}
			when := ""
			if e.Time != evidence.NoTime {
				when = fmt.Sprintf(" at %d", e.Time)
			}
			fmt.Fprintf(&b, "%d %s %s<%s %s%s%s %s\n", g.rec.Line, e.Session, e.ID, e.Parent, e.Kind, mark, when, e.Project)
			for _, s := range e.Spans {
				kind := ""
				if s.Kind != "" {
					kind = "/" + s.Kind
				}
				fmt.Fprintf(&b, "  %s%s %d %q\n", s.Role, kind, s.Class, s.Text)
			}
		}
		b.WriteString("\n")
	}
	file := filepath.Join("testdata", "chatgpt", "want.txt")
	if *updateChatGPT {
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

func gptNames(m map[string][]byte) []string {
	var out []string
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func TestChatGPTShape(t *testing.T) {
	for rel, want := range map[string]Shape{
		"conversation.json": Document, "a/b/conversations.json": Document, "conversations-000.json": Document, "conversations-12.json": Document,
		"conversations-.json": None, "conversations-x.json": None, "Conversations.json": None, "chat.html": None, "user.json": None,
		"message_feedback.json": None, "conversations.json.bak": None, "shared_conversations.json": None, "conversations-1": None,
	} {
		if got := ShapeOf(File{Origin: evidence.ChatGPT, Rel: rel}); got != want {
			t.Errorf("%s: %v, want %v", rel, got, want)
		}
	}
}

func TestChatGPTUnsupported(t *testing.T) {
	f := File{Origin: evidence.ChatGPT, Rel: "conversations.json"}
	for _, in := range []string{"", "  \n", `"text"`, "12", "null", `["a","b"]`, `[1]`, `[[]]`, "<!DOCTYPE html><html></html>", "PK\x03\x04zip",
		"\xff\xfe[\x00", "\x00\x00\x00", `{"a":1}`, `[{"a":1},{"b":2}]`, `{"user":{"id":"x"}}`, "hello"} {
		got := cxRead(t, f, []byte(in))
		var un *ErrUnsupported
		if !errors.As(got.err, &un) || un.Reason == "" {
			t.Errorf("%q: %v", in, got.err)
		}
	}
	for _, in := range []string{`[1]`, `{"a":1}`, "12"} {
		got := cxRead(t, File{Origin: evidence.Codex, Rel: "rollout-x.json"}, []byte(in))
		var un *ErrUnsupported
		if !errors.As(got.err, &un) {
			t.Errorf("codex %q: %v", in, got.err)
		}
	}
}

// TestChatGPTSkip passes over what is unchanged and reads the rest.
func TestChatGPTSkip(t *testing.T) {
	f := File{Origin: evidence.ChatGPT, Rel: "array/conversations.json"}
	data := gptFixtures(t)[f.Rel]
	p, _ := New(f, nil)
	var met []int64
	p.(Skipper).SetSkip(func(r *Record) bool {
		met = append(met, r.Start)
		return len(met) != 2
	})
	sessions := map[string]bool{}
	emit := func(_ *Record, e *Entry) error { sessions[e.Session] = true; return nil }
	if _, err := scanDocument(bytes.NewReader(data), f, Position{}, p, emit); err != nil {
		t.Fatal(err)
	}
	if len(met) != 3 || len(sessions) != 1 || !sessions["conv-br"] {
		t.Errorf("met %v, read %v", met, sessions)
	}
	if _, err := p.Finish(emit); err != nil {
		t.Error(err)
	}
}

// TestChatGPTDamage spoils exports: no panic, true ranges, and undamaged
// conversations in front of the damage are kept.
func TestChatGPTDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for name, clean := range gptFixtures(t) {
		f := File{Origin: evidence.ChatGPT, Rel: name}
		whole := cxRead(t, f, clean)
		for range 300 {
			data := cxSpoil(rng, clean)
			got := cxRead(t, f, data)
			var un *ErrUnsupported
			if got.err != nil && !errors.As(got.err, &un) {
				t.Fatal(got.err)
			}
			same := 0
			for same < len(data) && same < len(clean) && data[same] == clean[same] {
				same++
			}
			if un == nil {
				cxRanges(t, data, got)
			}
			if un == nil || len(got.entries) > 0 {
				for _, g := range whole.entries {
					if g.rec.End < int64(same) && !slices.ContainsFunc(got.entries, func(h gotEntry) bool {
						return h.entry.ID == g.entry.ID && h.entry.Session == g.entry.Session
					}) && !strings.HasPrefix(name, "object") {
						t.Fatalf("%s: %s was lost, damage at %d", name, g.entry.ID, same)
					}
				}
			}
		}
	}
}

func cxRanges(t *testing.T, data []byte, got *gotFile) {
	t.Helper()
	for _, g := range got.entries {
		if !bytes.Equal(data[g.rec.Start:g.rec.End], g.rec.Bytes) {
			t.Fatalf("record at %d is not its bytes", g.rec.Start)
		}
		if want := int64(1 + bytes.Count(data[:g.rec.Start], []byte{'\n'})); g.rec.Line != want {
			t.Fatalf("record at %d: line %d, want %d", g.rec.Start, g.rec.Line, want)
		}
	}
}

// TestChatGPTTruncated cuts an export everywhere.
func TestChatGPTTruncated(t *testing.T) {
	data := gptFixtures(t)["array/conversations.json"]
	f := File{Origin: evidence.ChatGPT, Rel: "conversations.json"}
	whole := cxRead(t, f, data)
	for n := 2; n < len(data); n += 3 {
		got := cxRead(t, f, data[:n])
		want := 0
		for _, g := range whole.entries {
			if g.rec.End <= int64(n) {
				want++
			}
		}
		if got.err != nil || len(got.entries) != want || got.res.Counts.Malformed == 0 {
			t.Fatalf("cut at %d: %d entries of %d, %v, %+v", n, len(got.entries), want, got.err, got.res.Counts)
		}
	}
}

// gptBench is an export of ordinary proportions.
func gptBench() []byte {
	var b bytes.Buffer
	say := strings.Repeat(`The kite \"rises\" when the string is let out slowly; mind the trees.\n\n`, 12)
	b.WriteString("[")
	for c := range 40 {
		if c > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"title": "Talk %d", "create_time": 1700000000.5, "update_time": 1700000000.5, "mapping": {"root": {"id": "root", "message": null, "parent": null, "children": ["n0"]}`, c)
		parent := "root"
		for n := range 60 {
			role := [2]string{"user", "assistant"}[n&1]
			fmt.Fprintf(&b, `, "n%d": {"id": "n%d", "message": {"id": "aaaaaaaa-bbbb-4ccc-8ddd-%04d%08d", "author": {"role": %q, "name": null, "metadata": {}}, "create_time": 1700000000.123456, "update_time": null, "content": {"content_type": "text", "parts": ["%d %s"]}, "status": "finished_successfully", "end_turn": true, "weight": 1.0, "metadata": {"citations": [], "gizmo_id": null, "message_type": null, "model_slug": "m", "default_model_slug": "auto", "parent_id": "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee", "request_id": "abcdef0123456789-XXX", "timestamp_": "absolute", "message_source": null}, "recipient": "all", "channel": null}, "parent": %q, "children": ["n%d"]}`, n, n, c, n, role, n, say, parent, n+1)
			parent = fmt.Sprintf("n%d", n)
		}
		fmt.Fprintf(&b, `}, "moderation_results": [], "current_node": %q, "conversation_id": "c%d", "id": "c%d"}`, parent, c, c)
	}
	b.WriteString("]")
	return b.Bytes()
}

func BenchmarkChatGPT(b *testing.B) {
	data := gptBench()
	f := File{Origin: evidence.ChatGPT, Rel: "conversations.json"}
	for _, skip := range []bool{false, true} {
		b.Run(map[bool]string{false: "parse", true: "skip"}[skip], func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				p, _ := New(f, nil)
				n := 0
				if skip {
					p.(Skipper).SetSkip(func(*Record) bool { n++; return true })
				}
				if _, err := scanDocument(bytes.NewReader(data), f, Position{}, p, func(*Record, *Entry) error { n++; return nil }); err != nil {
					b.Fatal(err)
				}
				if n < 40 {
					b.Fatal(n)
				}
			}
		})
	}
}

// An export that changed, read with its unchanged conversations passed over, gives
// together with what they gave before what one reading gives, whatever came first in
// the file, came again, or shares ids with others.
func TestChatGPTSkipsAsOneReading(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	f := File{Origin: evidence.ChatGPT, Rel: "conversations.json"}
	conversation := func() string {
		id, version := rnd.IntN(4), rnd.IntN(3)
		var nodes []string
		for i := range 1 + rnd.IntN(3) {
			nodes = append(nodes, fmt.Sprintf(`"n%d":{"parent":"n%d","message":{"id":"m%d","author":{"role":"user"},"content":{"content_type":"text","parts":["words %d of %d"]}}}`,
				i, i-1, (i+id+version)%4, version, id))
		}
		return fmt.Sprintf(`{"id":"c%d","mapping":{%s}}`, id, strings.Join(nodes, ","))
	}
	pool := make([]string, 12)
	for i := range pool {
		pool[i] = conversation()
	}
	export := func() []byte {
		var out []string
		for range 1 + rnd.IntN(5) {
			out = append(out, pool[rnd.IntN(len(pool))])
		}
		return []byte("[" + strings.Join(out, ",\n") + "]")
	}
	show := func(g gotEntry) string { return fmt.Sprintf("%+v", g.entry) }
	for range 2000 {
		before, now := export(), export()
		known := map[evidence.Digest][]string{}
		for _, g := range cxRead(t, f, before).entries {
			known[g.rec.Digest] = append(known[g.rec.Digest], show(g))
		}
		var want, got []string
		for _, g := range cxRead(t, f, now).entries {
			want = append(want, show(g))
		}
		p, err := New(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.(Skipper).SetSkip(func(r *Record) bool {
			kept, ok := known[r.Digest]
			delete(known, r.Digest)
			got = append(got, kept...)
			return ok
		})
		emit := func(r *Record, e *Entry) error { got = append(got, show(gotEntry{*r, *e})); return nil }
		if _, err := Scan(bytes.NewReader(now), f, Position{}, p, emit); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-whole +in steps):\n%s\n%s\n-- then --\n%s", d, before, now)
		}
	}
}
