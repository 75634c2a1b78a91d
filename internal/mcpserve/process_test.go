package mcpserve_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/mcptest"
)

const (
	meta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}`
	discover   = `{` + meta + `}`
	initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`
)

func start(t *testing.T) *mcptest.Peer {
	t.Helper()
	// A race-detecting child sleeps a second before it exits unless told not to.
	return mcptest.Start(t, []string{"GORACE=atexit_sleep_ms=0"}, tinyCommand(t)...)
}

func open(t *testing.T) *mcptest.Peer {
	t.Helper()
	p := start(t)
	p.Call("initialize", initialize)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return p
}

// toolCall is the params of a call of the initialize era.
func toolCall(name, args string) string { return `{"name":"` + name + `","arguments":` + args + `}` }

type toolResult struct {
	IsError bool `json:"isError"`
	Content []struct{ Type, Text, URI string }
	Data    json.RawMessage `json:"structuredContent"`
	Type    string          `json:"resultType"`
}

func read[T any](t *testing.T, m mcptest.Message) T {
	t.Helper()
	if m.Error != nil {
		t.Fatalf("error %d: %s", m.Error.Code, m.Error.Message)
	}
	var v T
	if err := json.Unmarshal(m.Result, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func toolNames(t *testing.T, m mcptest.Message) []string {
	t.Helper()
	var names []string
	for _, tool := range read[struct{ Tools []struct{ Name string } }](t, m).Tools {
		names = append(names, tool.Name)
	}
	return names
}

var all = []string{"echo", "slow", "long"}

// What Claude Code sends first.
func TestOpeningModern(t *testing.T) {
	p := start(t)
	d := read[struct {
		SupportedVersions []string
		Capabilities      map[string]any
		Instructions      string
		ResultType        string
	}](t, p.Call("server/discover", discover))
	if !slices.Contains(d.SupportedVersions, "2026-07-28") || !slices.Contains(d.SupportedVersions, "2024-11-05") {
		t.Errorf("versions %v", d.SupportedVersions)
	}
	if len(d.Capabilities) != 2 || d.Capabilities["tools"] == nil || d.Capabilities["resources"] == nil {
		t.Errorf("capabilities %v", d.Capabilities)
	}
	if d.Instructions != "A tiny server for tests." || d.ResultType != "complete" {
		t.Errorf("%+v", d)
	}
	listen := p.Request("subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+meta+`}`)
	p.AwaitFunc("acknowledgement", func(m mcptest.Message) bool { return m.Method == "notifications/subscriptions/acknowledged" })
	if got := toolNames(t, p.Call("tools/list", discover)); !slices.Equal(got, all) {
		t.Errorf("tools %v", got)
	}
	r := read[toolResult](t, p.Call("tools/call", `{"name":"echo","arguments":{"text":"hi"},`+meta+`}`))
	if r.IsError || r.Type != "complete" || string(r.Data) != `{"text":"hi"}` || r.Content[0].Text != `{"text":"hi"}` {
		t.Errorf("%+v", r)
	}
	p.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + listen + `,` + meta + `}}`)
	if m := p.Call("server/discover", strings.ReplaceAll(discover, "2026-07-28", "2099-01-01")); m.Error == nil || m.Error.Code != -32022 {
		t.Errorf("unknown modern version: %+v", m)
	}
	if m := p.Call("resources/read", `{"uri":"tiny-result://artifact/none",`+meta+`}`); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("unknown artifact: %+v", m.Error)
	}
}

func TestToolsArePortable(t *testing.T) {
	mcptest.LintTools(t, open(t).Call("tools/list", "{}").Result)
}

func TestOpeningLegacy(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2099-01-01"} {
		t.Run(version, func(t *testing.T) {
			p := start(t)
			// Codex and Gemini announce elicitation, which must not matter.
			init := strings.Replace(initialize, "2025-11-25", version, 1)
			init = strings.Replace(init, `"capabilities":{}`, `"capabilities":{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`, 1)
			r := read[struct {
				ProtocolVersion string
				Capabilities    map[string]any
			}](t, p.Call("initialize", init))
			want := min(version, "2025-11-25")
			if r.ProtocolVersion != want || r.Capabilities["logging"] != nil {
				t.Errorf("%+v", r)
			}
			p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if got := toolNames(t, p.Call("tools/list", "{}")); !slices.Equal(got, all) {
				t.Errorf("tools %v", got)
			}
			if m := p.Call("resources/read", `{"uri":"tiny-result://artifact/none"}`); m.Error == nil || m.Error.Code != -32002 {
				t.Errorf("unknown artifact: %+v", m.Error)
			}
			if m := p.Call("resources/read", `{"uri":"other://x"}`); m.Error == nil || m.Error.Code != -32002 {
				t.Errorf("unknown resource: %+v", m.Error)
			}
			if m := p.Call("resources/list", "{}"); m.Error != nil {
				t.Errorf("resources: %+v", m.Error)
			}
			if m := p.Call("initialize", initialize); m.Error != nil {
				t.Errorf("a second initialize: %+v", m.Error)
			}
		})
	}
}

// A client may probe first and then fall back on the same pipe.
func TestDiscoverThenInitialize(t *testing.T) {
	p := start(t)
	p.Call("server/discover", discover)
	r := read[struct{ ProtocolVersion string }](t, p.Call("initialize", strings.Replace(initialize, "2025-11-25", "2025-06-18", 1)))
	if r.ProtocolVersion != "2025-06-18" {
		t.Errorf("%+v", r)
	}
	if got := toolNames(t, p.Call("tools/list", "{}")); !slices.Equal(got, all) {
		t.Errorf("tools %v", got)
	}
}

func TestFirstMessageIsNotInitialize(t *testing.T) {
	p := start(t)
	if m := p.Call("ping", "{}"); m.Error != nil {
		t.Errorf("ping: %+v", m.Error)
	}
	if m := p.Call("server/discover", "{}"); m.Error == nil || m.Error.Code == 0 {
		t.Errorf("discover without metadata: %+v", m)
	}
	if m := p.Call("tools/list", "{}"); m.Error != nil && m.Error.Code == 0 {
		t.Errorf("early tools/list: %+v", m.Error)
	}
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if m := p.Call("no/such", "{}"); m.Error == nil {
		t.Errorf("no/such: %+v", m)
	}
	if m := p.Call("initialize", initialize); m.Error != nil {
		t.Errorf("initialize: %+v", m.Error)
	}
}

func TestGarbage(t *testing.T) {
	p := open(t)
	null := func(m mcptest.Message) bool { return string(m.ID) == "null" || m.ID == nil }
	for _, c := range []struct {
		line string
		code int
	}{
		{`this is not JSON`, -32700},
		{"\x00\xff{", -32700},
		{`{"jsonrpc":"2.0"`, -32700},
		{`7`, -32600},
		{`{}`, -32600},
		{`[]`, -32600},
		{`{"jsonrpc":"1.0","method":"ping"}`, -32600},
	} {
		p.Send(c.line)
		if m := p.AwaitFunc("refusal", null); m.Error == nil || m.Error.Code != c.code {
			t.Errorf("%q: %+v", c.line, m.Error)
		}
	}
	p.Send("")
	p.Send(`{"jsonrpc":"2.0","id":"x","result":{}}`) // an answer to nothing
	p.Send(`{"jsonrpc":"1.0","id":"old","method":"ping"}`)
	if m := p.Await(`"old"`); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("%+v", m.Error)
	}
	p.Send(`{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 9<<20) + `"}}}`)
	if m := p.Await(`"big"`); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("giant frame: %+v", m.Error)
	}
	if m := p.Call("ping", "{}"); m.Error != nil {
		t.Errorf("ping: %+v", m.Error)
	}
}

func TestBatch(t *testing.T) {
	p := open(t)
	p.Send(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b","method":"ping"}]`)
	p.Await(`"a"`)
	p.Await(`"b"`)
}

func TestToolErrors(t *testing.T) {
	p := open(t)
	for _, c := range []struct{ name, args, text, data string }{
		{"echo", `{"text":"fault"}`, "not_today: it does not work today\nTry tomorrow.",
			`{"code":"not_today","message":"it does not work today","hint":"Try tomorrow."}`},
		{"echo", `{"text":"panic"}`, "internal: something went wrong inside the program",
			`{"code":"internal","message":"something went wrong inside the program"}`},
		{"echo", `{"text":"bug"}`, "internal: something went wrong inside the program",
			`{"code":"internal","message":"something went wrong inside the program"}`},
		{"slow", `{"millis":"5"}`, "Input validation error: Invalid arguments for tool slow: millis must be a whole number from 0 to 60000, not a string",
			`{"code":"invalid_argument","message":"millis must be a whole number from 0 to 60000, not a string"}`},
	} {
		r := read[toolResult](t, p.Call("tools/call", toolCall(c.name, c.args)))
		if !r.IsError || r.Content[0].Text != c.text || string(r.Data) != c.data {
			t.Errorf("%s %s: %+v %s", c.name, c.args, r, r.Data)
		}
	}
	if m := p.Call("tools/call", toolCall("nope", "{}")); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("unknown tool: %+v", m)
	}
}

func TestPingWhileSlow(t *testing.T) {
	p := open(t)
	slow := p.Request("tools/call", toolCall("slow", `{"millis":3000}`))
	start := time.Now()
	p.Call("ping", "{}")
	if d := time.Since(start); d > time.Second {
		t.Errorf("ping took %v", d)
	}
	if r := read[toolResult](t, p.Await(slow)); string(r.Data) != `{"steps":300}` {
		t.Errorf("%s", r.Data)
	}
}

func TestCancel(t *testing.T) {
	p := open(t)
	slow := p.Request("tools/call", toolCall("slow", `{"millis":60000}`))
	p.Call("ping", "{}")
	p.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + slow + `}}`)
	// The slot is free again and no answer comes.
	for range 20 {
		read[toolResult](t, p.Call("tools/call", toolCall("echo", `{"text":"x"}`)))
	}
	for _, m := range p.Rest() {
		if string(m.ID) == slow {
			t.Errorf("a cancelled request was answered: %s", m.Result)
		}
	}
}

func TestProgress(t *testing.T) {
	for name, call := range map[string]string{
		"legacy": `{"name":"slow","arguments":{"millis":500},"_meta":{"progressToken":"tok"}}`,
		"modern": `{"name":"slow","arguments":{"millis":500},"_meta":{"progressToken":"tok",` + strings.TrimPrefix(meta, `"_meta":{`) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t)
			read[toolResult](t, p.Call("tools/call", call))
			last, count := 0.0, 0
			for _, m := range p.Rest() {
				var n struct {
					ProgressToken   string
					Progress, Total float64
				}
				if m.Method != "notifications/progress" {
					continue
				}
				if err := json.Unmarshal(m.Params, &n); err != nil || n.ProgressToken != "tok" || n.Progress <= last || n.Total != 50 {
					t.Errorf("%s after %v (%v)", m.Params, last, err)
				}
				last, count = n.Progress, count+1
			}
			if last != 50 || count < 3 || count > 10 {
				t.Errorf("%d notifications, last %v", count, last)
			}
		})
	}
}

func TestEnd(t *testing.T) {
	for name, args := range map[string]string{"obedient": `{"millis":60000}`, "stubborn": `{"millis":60000,"stubborn":true}`} {
		t.Run(name+"/EOF", func(t *testing.T) {
			p := open(t)
			p.Request("tools/call", toolCall("slow", args))
			p.Call("ping", "{}")
			p.CloseInput()
			if err := p.WaitExit(2 * time.Second); err != nil {
				t.Error(err)
			}
		})
		t.Run(name+"/SIGTERM", func(t *testing.T) {
			p := open(t)
			p.Request("tools/call", toolCall("slow", args))
			p.Call("ping", "{}")
			if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := p.WaitExit(2 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("idle", func(t *testing.T) {
		p := open(t)
		p.Request("subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+meta+`}`)
		p.CloseInput()
		start := time.Now()
		if err := p.WaitExit(2 * time.Second); err != nil || time.Since(start) > 900*time.Millisecond {
			t.Error(err, time.Since(start))
		}
	})
}

// A shell that pipes requests in and closes the pipe gets its answers.
func TestAnswersAfterEOF(t *testing.T) {
	cmd := tinyCommand(t)
	c := exec.Command(cmd[0], cmd[1:]...)
	c.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + "}\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + toolCall("slow", `{"millis":200}`) + "}")
	out, err := c.Output()
	if err != nil || !bytes.Contains(out, []byte(`{"steps":20}`)) {
		t.Errorf("%v: %s", err, out)
	}
}

// A parent that dies while somebody else holds the pipe must not leave us behind.
func TestDeadParent(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	cmd := tinyCommand(t)
	r, w, err := os.Pipe() // our end keeps the server's stdin open
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	parent := exec.Command(sh, "-c", `exec 3<&0; "$@" <&3 & wait`, "sh", cmd[0], cmd[1])
	parent.Stdin = r
	out, err := parent.StdoutPipe() // reaches EOF when the server is gone
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	r.Close()
	lines := bufio.NewReader(out)
	if _, err := w.WriteString("no message\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := lines.ReadString('\n'); err != nil { // it serves
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	done := make(chan struct{})
	go func() { _, _ = lines.WriteTo(io.Discard); close(done) }()
	select {
	case <-done:
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("took %v", d)
		}
	case <-time.After(8 * time.Second):
		t.Error("the server outlived its parent")
	}
	_ = parent.Wait()
}

func TestStdoutIsGuarded(t *testing.T) {
	p := open(t)
	read[toolResult](t, p.Call("tools/call", toolCall("echo", `{"text":"x"}`)))
	p.CloseInput()
	_ = p.WaitExit(5 * time.Second) // what it wrote has arrived when it is gone
	if !strings.Contains(p.Stderr(), "a stray line") {
		t.Error("the stray line is nowhere")
	}
} // and Start's cleanup checks stdout

func TestEightAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	peers := make([]*mcptest.Peer, 8)
	for i := range peers {
		peers[i] = start(t)
	}
	for _, p := range peers {
		wg.Go(func() {
			p.Call("initialize", initialize)
			for range 25 {
				p.Call("tools/call", toolCall("echo", `{"text":"x"}`))
			}
			p.CloseInput()
			if err := p.WaitExit(2 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func BenchmarkStartToInitialize(b *testing.B) {
	cmd := tinyCommand(b)
	for b.Loop() {
		p := mcptest.Start(b, []string{}, cmd...)
		p.Call("initialize", initialize)
		b.StopTimer()
		p.CloseInput()
		_ = p.WaitExit(2 * time.Second)
		b.StartTimer()
	}
}

func BenchmarkCall(b *testing.B) {
	p := mcptest.Start(b, []string{}, tinyCommand(b)...)
	p.Call("initialize", initialize)
	for b.Loop() {
		p.Call("tools/call", toolCall("echo", `{"text":"x"}`))
	}
}
