package transcript

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"localmcp/mooncite/internal/evidence"
)

// TestDocumentChunks reads in the smallest pieces.
func TestDocumentChunks(t *testing.T) {
	for name, data := range gptFixtures(t) {
		f := File{Origin: evidence.ChatGPT, Rel: name}
		whole := cxRead(t, f, data)
		for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.HalfReader, iotest.DataErrReader} {
			p, _ := New(f, nil)
			got := new(gotFile)
			emit := func(r *Record, e *Entry) error {
				c := *r
				c.Bytes = slices.Clone(r.Bytes)
				got.entries = append(got.entries, gotEntry{c, *e})
				return nil
			}
			at, err := scanDocument(wrap(bytes.NewReader(data)), f, Position{}, p, emit)
			if err != nil {
				t.Fatal(name, err)
			}
			got.res, _ = p.Finish(emit)
			if d := cmp.Diff(whole.entries, got.entries, cmp.AllowUnexported(gotEntry{}, Record{})); d != "" {
				t.Fatal(name, d)
			}
			if at.Offset != int64(len(data)) || at.Line != int64(bytes.Count(data, []byte{'\n'})) {
				t.Errorf("%s: ended at %+v", name, at)
			}
			if a, b := whole.res.Counts, got.res.Counts; a.Malformed != b.Malformed || a.Records != b.Records {
				t.Errorf("%s: %+v, %+v", name, a, b)
			}
		}
	}
}

func TestDocumentReadError(t *testing.T) {
	data := gptFixtures(t)["array/conversations.json"]
	f := File{Origin: evidence.ChatGPT, Rel: "conversations.json"}
	broken := errors.New("disk")
	for _, n := range []int{0, 1, 100, len(data) / 2, len(data) - 1} {
		p, _ := New(f, nil)
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken))
		if _, err := scanDocument(r, f, Position{}, p, func(*Record, *Entry) error { return nil }); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	p, _ := New(f, nil)
	if _, err := scanDocument(bytes.NewReader(data), f, Position{}, p, func(*Record, *Entry) error { return broken }); !errors.Is(err, broken) {
		t.Error("emit's error is lost:", err)
	}
	if _, err := scanDocument(bytes.NewReader(data), f, Position{Offset: 1}, p, nil); !errors.Is(err, ErrRestart) {
		t.Error("a document is not continued:", err)
	}
}

// TestDocumentOversized passes over a conversation that is too long.
func TestDocumentOversized(t *testing.T) {
	data := gptFixtures(t)["array/conversations.json"]
	p, _ := New(File{Origin: evidence.ChatGPT, Rel: "conversations.json"}, nil)
	sessions := map[string]bool{}
	s := &docScan{r: bytes.NewReader(data), parser: p, limit: 1500, buf: make([]byte, firstBuffer),
		emit: func(_ *Record, e *Entry) error { sessions[e.Session] = true; return nil }}
	if err := s.document(); err != nil && err != errStop {
		t.Fatal(err)
	}
	res, err := p.Finish(s.emit)
	if err != nil || res.Counts.Oversized != 1 || res.Counts.Malformed != 0 || len(sessions) != 2 || sessions["conv-br"] {
		t.Errorf("%v %+v %v", err, res.Counts, sessions)
	}
}

// TestDocumentDeep nests without end.
func TestDocumentDeep(t *testing.T) {
	for _, f := range []File{{evidence.ChatGPT, "conversations.json"}, {evidence.Codex, "rollout-x.json"}} {
		for _, in := range []string{strings.Repeat("[", 1<<20), `[{"a":` + strings.Repeat(`[{"a":`, 1<<18), `{"items":[{"a":` + strings.Repeat("[", 1<<20),
			`[{"mapping":{"a":` + strings.Repeat(`{"b":`, 9000) + "1" + strings.Repeat("}", 9000) + `},"id":"x"}]`} {
			cxRead(t, f, []byte(in))
		}
	}
}

func FuzzDocument(f *testing.F) {
	for _, data := range gptFixtures(f) {
		f.Add(data)
	}
	f.Add(cxFixture(f, "rollout-2025-06-20-0f2b6c1e-1111-4222-8333-444455556666.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := cxRead(t, File{Origin: evidence.ChatGPT, Rel: "conversations.json"}, data)
		cxRanges(t, data, got)
		cxRanges(t, data, cxRead(t, File{Origin: evidence.Codex, Rel: "rollout-x.json"}, data))
	})
}

// TestDocumentItems loses one damaged item of an old rollout and no other.
func TestDocumentItems(t *testing.T) {
	item := func(role, text string) string {
		return `{"type":"message","role":"` + role + `","content":[{"type":"input_text","text":"` + text + `"},{"type":"input_text","text":"more"}]}`
	}
	f := File{Origin: evidence.Codex, Rel: "rollout-2025-06-20-x.json"}
	for _, bad := range []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"unen`, `{"type":"message","role":"us"er"}`, `{"type":"message"]`, `7`} {
		doc := `{"session":{"id":"s","timestamp":"2025-06-20T08:00:00Z","instructions":""},"items":[` +
			item("user", "one") + "," + bad + "," + item("assistant", "two") + "]}"
		got := cxRead(t, f, []byte(doc))
		if got.err != nil || len(got.entries) != 2 || got.entries[1].entry.Spans[0].Text != "two" || got.res.Counts.Malformed == 0 {
			t.Errorf("%s: %v %s %+v", bad, got.err, cxShow(got), got.res.Counts)
		}
		cxRanges(t, []byte(doc), got)
	}
}
