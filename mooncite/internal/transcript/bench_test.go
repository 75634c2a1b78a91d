package transcript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
)

// benchSession is a session as Claude Code writes it: prose with escapes, tool
// calls, tool results that come twice, notices, and now and then an image.
func benchSession() []byte {
	var b bytes.Buffer
	prose := strings.Repeat("The starter wants warmth; feed it at \"dawn\" and fold the dough.\nThen wait, and write `crumb.md` again. ", 6)
	code := strings.Repeat("\tif err := oven.Heat(230); err != nil {\n\t\treturn fmt.Errorf(\"heat: %w\", err)\n\t}\n", 30)
	quote := func(s string) string { q, _ := json.Marshal(s); return string(q) }
	parent := "null"
	for i := 0; b.Len() < 16<<20; i++ {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
		head := fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/w/bakery","sessionId":"11111111-1111-4111-8111-111111111111","version":"2.1.332","gitBranch":"main",`, parent)
		tail := fmt.Sprintf(`,"uuid":"%s","timestamp":"2031-05-01T10:00:00.000Z"}`, id)
		answer := fmt.Sprintf(`"type":"assistant","message":{"id":"msg_%d","type":"message","role":"assistant","model":"kettle-9","content":[`, i/3)
		usage := `],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":12000,"output_tokens":5}},"requestId":"req_1"`
		b.WriteString(head)
		switch i % 6 {
		case 0:
			b.WriteString(`"type":"user","message":{"role":"user","content":` + quote(prose[:200]) + `}`)
		case 1, 5:
			b.WriteString(answer + `{"type":"text","text":` + quote(prose) + `}` + usage)
		case 2:
			b.WriteString(answer + `{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/w/bakery/oven.go","old_string":` + quote(code[:400]) + `,"new_string":` + quote(code[:900]) + `}}` + usage)
		case 3:
			b.WriteString(`"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":` + quote(code) + `}]},"toolUseResult":{"stdout":` + quote(code) + `,"stderr":"","interrupted":false}`)
		case 4:
			if i%60 == 4 {
				b.WriteString(`"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("QUJDREVG", 8000) + `"}}]}`)
			} else {
				b.WriteString(`"type":"attachment","attachment":{"type":"todo_reminder","content":[],"itemCount":0}`)
			}
		}
		b.WriteString(tail + "\n")
		parent = `"` + id + `"`
	}
	return b.Bytes()
}

func BenchmarkClaude(b *testing.B) {
	data := benchSession()
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			p, err := New(claudeFile, nil)
			if err != nil {
				b.Fatal(err)
			}
			spans := 0
			emit := func(_ *Record, e *Entry) error { spans += len(e.Spans); return nil }
			if _, err := Scan(bytes.NewReader(data), claudeFile, Position{}, p, emit); err != nil {
				b.Fatal(err)
			}
			if _, err := p.Finish(emit); err != nil || spans == 0 {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		// The plain way: lines, a struct for the envelope, no digests, no branches.
		type block struct {
			Type, Text string
			Input      map[string]any
			Content    any
		}
		type record struct {
			Type, UUID, ParentUUID, Timestamp, Cwd string
			Message                                struct{ Content json.RawMessage }
		}
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for line := range bytes.Lines(data) {
				var r record
				if err := json.Unmarshal(line, &r); err != nil {
					b.Fatal(err)
				}
				var text string
				var blocks []block
				if json.Unmarshal(r.Message.Content, &text) != nil {
					_ = json.Unmarshal(r.Message.Content, &blocks)
				}
				n += len(text) + len(blocks)
			}
			if n == 0 {
				b.Fatal("nothing read")
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	line := []byte(claudeLine(1, "null", strings.Repeat("a line of a question\n", 20)))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		e, err := Decode(claudeFile, &Record{Line: 1, Bytes: line})
		if err != nil || len(e) != 1 || e[0].Spans[0].Role != evidence.User {
			b.Fatal(err)
		}
	}
}

// corpusFiles writes an invented history of one origin and reads its files.
func corpusFiles(tb testing.TB, o evidence.Origin, bytes int64) (files []fixture, size int64) {
	tb.Helper()
	home := tb.TempDir()
	if _, err := corpus.Write(context.Background(), corpus.Config{Home: home, Bytes: bytes, Only: o}); err != nil {
		tb.Fatal(err)
	}
	root := filepath.Join(home, map[evidence.Origin]string{
		evidence.Pi: ".pi/agent/sessions", evidence.OMP: ".omp/agent/sessions", evidence.Claude: ".claude/projects",
		evidence.Codex: ".codex/sessions", evidence.ChatGPT: "incoming/chatgpt-share-archive",
	}[o])
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		if f := (File{o, filepath.ToSlash(rel)}); ShapeOf(f) != None {
			files = append(files, fixture{file: f, data: data})
			size += int64(len(data))
		}
		return err
	})
	if err != nil || size < bytes/2 {
		tb.Fatal(size, err)
	}
	return files, size
}

// BenchmarkCorpus reads the invented history that everything else is measured with.
// "digests" is what of it is the SHA-256 of the records, which is their identity.
func BenchmarkCorpus(b *testing.B) {
	for _, row := range formats {
		b.Run(string(row.origin), func(b *testing.B) {
			files, size := corpusFiles(b, row.origin, 16<<20)
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				for _, x := range files {
					p, err := New(x.file, nil)
					if err != nil {
						b.Fatal(err)
					}
					emit := func(*Record, *Entry) error { return nil }
					if _, err := Scan(bytes.NewReader(x.data), x.file, Position{}, p, emit); err != nil {
						b.Fatal(err)
					}
					if _, err := p.Finish(emit); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("digests", func(b *testing.B) {
		files, size := corpusFiles(b, evidence.Claude, 16<<20)
		b.SetBytes(size)
		for b.Loop() {
			for _, x := range files {
				for line := range bytes.Lines(x.data) {
					sha256.Sum256(line)
				}
			}
		}
	})
}
