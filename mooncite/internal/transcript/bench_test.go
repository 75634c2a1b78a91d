package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
