package mcpserve_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

// connect serves o to an SDK client over pipes in this process.
func connect(t *testing.T, o mcpserve.Options, client string) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- mcpserve.New(o).Serve(context.Background(), inR, outW) }()
	c := mcp.NewClient(&mcp.Implementation{Name: client, Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = inW.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return session
}

func callLong(t *testing.T, s *mcp.ClientSession, count int) (*mcp.CallToolResult, longOut) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "long", Arguments: map[string]any{"count": count}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var out longOut
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return r, out
}

func TestShortAnswerIsWhole(t *testing.T) {
	r, out := callLong(t, connect(t, tiny(), "c"), 10)
	if out.ResultDetail != nil || len(out.Lines) != 10 || len(r.Content) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestLongAnswerIsCutAndKept(t *testing.T) {
	o := tiny()
	s := connect(t, o, "c")
	r, out := callLong(t, s, 5000)
	text := r.Content[0].(*mcp.TextContent).Text
	data, _ := json.Marshal(r.StructuredContent)
	if len(text) > 10_000 || len(data) > 10_000 {
		t.Errorf("text %d, json %d", len(text), len(data))
	}
	d := out.ResultDetail
	if d == nil || d.Complete || d.Kind != "progressive_result" || d.FullResult == nil {
		t.Fatalf("%+v", d)
	}
	if last := out.Lines[len(out.Lines)-1]; !strings.Contains(text, last+"\n\nThis answer was cut.") || !strings.Contains(text, d.FullResult.URI) {
		t.Errorf("text and structure were cut differently: %q", text[len(text)-300:])
	}
	link := r.Content[1].(*mcp.ResourceLink)
	if link.URI != d.FullResult.URI || int(*link.Size) != d.FullResult.Bytes {
		t.Errorf("%+v", link)
	}
	doc := readDoc(t, s, d.FullResult.URI)
	var whole struct {
		Kind, Tool, CreatedAt, RenderedText string
		StructuredContent                   longOut
	}
	if err := json.Unmarshal([]byte(doc), &whole); err != nil || len(doc) != d.FullResult.Bytes {
		t.Fatal(err, len(doc))
	}
	if whole.Kind != "tiny_result_artifact" || whole.Tool != "long" || len(whole.StructuredContent.Lines) != 5000 ||
		!strings.HasSuffix(whole.RenderedText, "line 4999 of text") || !strings.Contains(doc, "\n  \"tool\"") {
		t.Errorf("%.300s", doc)
	}
}

func readDoc(t *testing.T, s *mcp.ClientSession, uri string) string {
	t.Helper()
	r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	return r.Contents[0].Text
}

func gone(t *testing.T, s *mcp.ClientSession, uri string) bool {
	t.Helper()
	_, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
	return err != nil
}

func TestArtifactsExpireAndGiveWay(t *testing.T) {
	var offset atomic.Int64
	o := tiny()
	o.Now = func() time.Time { return time.Unix(1_800_000_000, 0).Add(time.Duration(offset.Load())) }
	s := connect(t, o, "c")
	var uris []string
	for range 13 {
		_, out := callLong(t, s, 1000)
		uris = append(uris, out.ResultDetail.FullResult.URI)
	}
	if !gone(t, s, uris[0]) || gone(t, s, uris[1]) || gone(t, s, uris[12]) {
		t.Error("of 13 the oldest goes and 12 stay")
	}
	offset.Store(int64(10*time.Minute - time.Second))
	if gone(t, s, uris[12]) {
		t.Error("gone too early")
	}
	offset.Store(int64(10 * time.Minute))
	if !gone(t, s, uris[12]) {
		t.Error("still there after ten minutes")
	}
	// One larger than the shelf is cut but not kept; the shelf as a whole is bounded.
	_, out := callLong(t, s, 100_000)
	if d := out.ResultDetail; d == nil || d.FullResult == nil {
		t.Fatalf("%+v", d)
	}
	first := out.ResultDetail.FullResult.URI
	for range 2 {
		callLong(t, s, 100_000)
	}
	if !gone(t, s, first) {
		t.Error("more than 8 MiB are kept")
	}
	o.Artifacts.Bytes = 1000
	r, out := callLong(t, connect(t, o, "c"), 1000)
	if d := out.ResultDetail; d == nil || d.FullResult != nil || len(r.Content) != 1 {
		t.Errorf("%+v", d)
	}
}

// What an answer rested on is withdrawn: the answer is gone, those of other tools stay, and
// a withdrawal while the tool ran counts.
func TestArtifactsRestOnSomething(t *testing.T) {
	var basis atomic.Value
	basis.Store("a")
	o := tiny()
	o.Artifacts.Basis = func(tool string) string { return tool + basis.Load().(string) }
	s := connect(t, o, "c")
	_, out := callLong(t, s, 1000)
	uri := out.ResultDetail.FullResult.URI
	if gone(t, s, uri) {
		t.Error("gone without a reason")
	}
	basis.Store("b")
	if !gone(t, s, uri) {
		t.Error("it can be read after what it rests on was withdrawn")
	}
	basis.Store("a")
	if !gone(t, s, uri) {
		t.Error("it came back")
	}
	o.Runner = meanwhile{o.Set, func() { basis.Store("c") }}
	s = connect(t, o, "c")
	_, out = callLong(t, s, 1000)
	if !gone(t, s, out.ResultDetail.FullResult.URI) {
		t.Error("what was withdrawn while the tool ran can be read")
	}
}

// meanwhile runs an operation and then something else, before the answer is out.
type meanwhile struct {
	op.Runner
	then func()
}

func (m meanwhile) Run(ctx context.Context, c op.Call) (any, error) {
	out, err := m.Runner.Run(ctx, c)
	m.then()
	return out, err
}

func TestSomeClientsGetTheWhole(t *testing.T) {
	o := tiny()
	o.Whole = []string{"tiny-pi"}
	if _, out := callLong(t, connect(t, o, "tiny-pi"), 5000); len(out.Lines) != 5000 || out.ResultDetail != nil {
		t.Errorf("%d lines", len(out.Lines))
	}
}

// What is returned fits the declared schema, failures included: some clients check.
func TestAnswersFitTheSchema(t *testing.T) {
	s := connect(t, tiny(), "c")
	schemas := map[string]*jsonschema.Resolved{}
	tools, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		data, _ := json.Marshal(tool.OutputSchema)
		var schema jsonschema.Schema
		if err := json.Unmarshal(data, &schema); err != nil {
			t.Fatal(err)
		}
		if schemas[tool.Name], err = schema.Resolve(nil); err != nil {
			t.Fatal(err)
		}
		a := tool.Annotations
		if !a.ReadOnlyHint || !a.IdempotentHint || a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Errorf("%s: hints %+v", tool.Name, a)
		}
	}
	for _, c := range []mcp.CallToolParams{
		{Name: "echo", Arguments: map[string]any{"text": "x"}},
		{Name: "echo", Arguments: map[string]any{"text": "fault"}},
		{Name: "echo", Arguments: map[string]any{"txt": "x"}},
		{Name: "long", Arguments: map[string]any{"count": 0}},
		{Name: "long", Arguments: map[string]any{"count": 3000}},
		{Name: "long", Arguments: map[string]any{"count": -1}},
	} {
		r, err := s.CallTool(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		if err := schemas[c.Name].Validate(r.StructuredContent); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
}

func TestToolCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int64
		wait := op.New(op.Spec{Name: "wait", Title: "Wait", Doc: "Waits."},
			func(context.Context, op.Call, struct{}) (struct{}, error) {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				time.Sleep(time.Second)
				return struct{}{}, nil
			})
		s := connect(t, mcpserve.Options{Name: "b", Version: "1", Set: op.NewSet(wait), MaxCalls: 3}, "c")
		done := make(chan error)
		for range 9 {
			go func() {
				_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
				done <- err
			}()
		}
		begin := time.Now()
		for range 9 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(begin); most.Load() != 3 || d != 3*time.Second {
			t.Errorf("%d at once, %v", most.Load(), d)
		}
	})
}

func TestTooManyRequestsAreRefused(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	go func() { _ = mcpserve.New(tiny()).Serve(t.Context(), inR, outW) }()
	go func() {
		fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":%s}`+"\n", initialize)
		for i := range 300 {
			fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow","arguments":{"millis":60000}}}`+"\n", i)
		}
	}()
	dec := json.NewDecoder(outR)
	for range 40 {
		var m struct {
			Error *struct{ Code int }
			ID    any
		}
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if m.ID != "i" && (m.Error == nil || m.Error.Code != -32603) {
			t.Errorf("%+v", m)
		}
	}
}

func BenchmarkNewServer(b *testing.B) {
	for b.Loop() {
		mcpserve.New(tiny())
	}
}

// said is an answer that may fail and brings a picture and a sound.
type said struct {
	OK bool `json:"ok"`
}

func (s said) Failed() bool { return !s.OK }

func (s said) Blocks() []op.Block {
	return []op.Block{{MIME: "image/png", Data: []byte("picture")}, {MIME: "audio/wav", Data: []byte("sound")}}
}

// TestAnswersThatFailOrCarry shows that an answer of its own form can say that it failed,
// and that pictures and sounds stand after the text of one that did not.
func TestAnswersThatFailOrCarry(t *testing.T) {
	run := func(_ context.Context, c op.Call) (any, error) { return said{OK: string(c.Args) != `{"no":1}`}, nil }
	schema := json.RawMessage(`{"type":"object"}`)
	ops := op.NewSet(op.Raw(op.Spec{Name: "say", Title: "Say", Doc: "Says."}, func() (in, out json.RawMessage) { return schema, schema }, run))
	s := connect(t, mcpserve.Options{Name: "raw", Version: "1", Set: ops}, "test")
	good, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "say"})
	if err != nil {
		t.Fatal(err)
	}
	if good.IsError || len(good.Content) != 3 {
		t.Fatalf("good: error %v, %d blocks", good.IsError, len(good.Content))
	}
	if p, ok := good.Content[1].(*mcp.ImageContent); !ok || string(p.Data) != "picture" || p.MIMEType != "image/png" {
		t.Errorf("picture: %+v", good.Content[1])
	}
	if p, ok := good.Content[2].(*mcp.AudioContent); !ok || string(p.Data) != "sound" {
		t.Errorf("sound: %+v", good.Content[2])
	}
	bad, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "say", Arguments: json.RawMessage(`{"no":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	if !bad.IsError || len(bad.Content) != 1 || bad.Content[0].(*mcp.TextContent).Text != `{"ok":false}` {
		t.Errorf("bad: %+v", bad)
	}
}
