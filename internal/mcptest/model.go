package mcptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Model stands in for the one behind a client, on the loopback interface. It speaks the
// ways Claude Code, Codex, Pi and OMP speak.
type Model struct {
	*httptest.Server
	Answer string // what it says in the end

	play func(tools, results []string) Move

	mu      sync.Mutex // guards what follows
	tools   []string   // what the last request offered
	results []string   // of tools, in their order
	strange []string   // requests it did not understand
}

// A Move is what a model does next: a call of a tool, or the answer when Name is empty.
type Move struct {
	Name string
	Args map[string]any
}

// NewModel starts a model, which ends with the test. play decides by the tools' names and
// by what they have answered so far.
func NewModel(t testing.TB, answer string, play func(tools, results []string) Move) *Model {
	m := &Model{Answer: answer, play: play}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// Named is the tool that is called so behind its server's name; empty when there is none.
func Named(tools []string, suffix string) string {
	for _, name := range tools {
		if strings.HasSuffix(name, suffix) || name == "xd://mcp__"+suffix {
			return name
		}
	}
	return ""
}

// Seen are the tools that the last request offered, the results the model got, and the
// requests it did not understand.
func (m *Model) Seen() (tools, results, strange []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tools, m.results, m.strange
}

// Forget makes it begin anew.
func (m *Model) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools, m.results, m.strange = nil, nil, nil
}

func (m *Model) next(tools, results []string) Move {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = tools
	if len(results) > len(m.results) {
		m.results = results
	}
	return m.play(tools, results)
}

// devices are a server's tools as OMP names them.
var devices = regexp.MustCompile(`xd://mcp__[a-z_]+\b`)

// ServeHTTP answers as the way of speaking asks for.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages"):
		m.messages(w, body)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		m.responses(w, body)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		m.completions(w, body)
	default:
		m.mu.Lock()
		m.strange = append(m.strange, r.Method+" "+r.URL.Path)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"data":[],"models":[],"input_tokens":1}`)
	}
}

// events writes server-sent events.
func events(w http.ResponseWriter, list ...map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range list {
		data, err := json.Marshal(e)
		if err != nil {
			panic(err)
		}
		if name, ok := e["type"].(string); ok {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

// flat is the text of a content that is a string or a list of parts.
func flat(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(raw, &parts) != nil {
		return string(raw)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// messages speaks as Claude Code asks.
func (m *Model) messages(w http.ResponseWriter, body []byte) {
	var in struct {
		Tools    []struct{ Name string }
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal(body, &in)
	var tools, results []string
	for _, t := range in.Tools {
		tools = append(tools, t.Name)
	}
	for _, msg := range in.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(msg.Content, &parts) // a plain string holds no result
		for _, p := range parts {
			if p.Type == "tool_result" {
				results = append(results, flat(p.Content))
			}
		}
	}
	next := Move{}
	if len(tools) > 0 { // side questions, such as for a title, have none
		next = m.next(tools, results)
	}
	block, delta, stop := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": m.Answer}, "end_turn"
	if next.Name != "" {
		args, err := json.Marshal(next.Args)
		if err != nil {
			panic(err)
		}
		block = map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", len(results)), "name": next.Name, "input": map[string]any{}}
		delta, stop = map[string]any{"type": "input_json_delta", "partial_json": string(args)}, "tool_use"
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	events(w,
		map[string]any{"type": "message_start", "message": map[string]any{"id": "msg", "type": "message", "role": "assistant", "model": "stand-in", "content": []any{}, "usage": usage}},
		map[string]any{"type": "content_block_start", "index": 0, "content_block": block},
		map[string]any{"type": "content_block_delta", "index": 0, "delta": delta},
		map[string]any{"type": "content_block_stop", "index": 0},
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stop}, "usage": usage},
		map[string]any{"type": "message_stop"},
	)
}

// responses speaks as Codex asks. Its tools of a server may be in a namespace.
func (m *Model) responses(w http.ResponseWriter, body []byte) {
	type tool struct {
		Type, Name string
		Tools      []struct{ Name string }
	}
	var in struct {
		Tools []tool
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &in)
	var tools, results []string
	space := map[string]string{}
	for _, t := range in.Tools {
		tools = append(tools, t.Name)
		for _, inner := range t.Tools {
			tools = append(tools, inner.Name)
			space[inner.Name] = t.Name
		}
	}
	for _, i := range in.Input {
		if i.Type == "function_call_output" {
			results = append(results, flat(i.Output))
		}
	}
	next := m.next(tools, results)
	item := map[string]any{"type": "message", "id": "msg", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": m.Answer}}}
	if next.Name != "" {
		args, err := json.Marshal(next.Args)
		if err != nil {
			panic(err)
		}
		item = map[string]any{"type": "function_call", "id": "fc", "call_id": fmt.Sprintf("call_%d", len(results)), "name": next.Name, "arguments": string(args)}
		if in := space[next.Name]; in != "" {
			item["namespace"] = in
		}
	}
	events(w,
		map[string]any{"type": "response.created", "response": map[string]any{"id": "resp"}},
		map[string]any{"type": "response.output_item.done", "output_index": 0, "item": item},
		map[string]any{"type": "response.completed", "response": map[string]any{"id": "resp", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}},
	)
}

// completions speaks as Pi and OMP ask.
func (m *Model) completions(w http.ResponseWriter, body []byte) {
	var in struct {
		Tools []struct {
			Function struct{ Name string }
		}
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &in)
	var tools, results []string
	for _, t := range in.Tools {
		tools = append(tools, t.Function.Name)
	}
	for _, msg := range in.Messages {
		if msg.Role == "tool" {
			results = append(results, flat(msg.Content))
		}
	}
	// OMP has a server's tools as devices: their arguments are written to their names.
	found := devices.FindAllString(string(body), -1)
	next := m.next(append(tools, found...), results)
	if slices.Contains(found, next.Name) {
		content, err := json.Marshal(next.Args)
		if err != nil {
			panic(err)
		}
		next = Move{"write", map[string]any{"path": next.Name, "content": string(content)}}
	}
	delta, stop := map[string]any{"role": "assistant", "content": m.Answer}, "stop"
	if next.Name != "" {
		args, err := json.Marshal(next.Args)
		if err != nil {
			panic(err)
		}
		delta = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": fmt.Sprintf("call_%d", len(results)), "type": "function",
			"function": map[string]any{"name": next.Name, "arguments": string(args)}}}}
		stop = "tool_calls"
	}
	chunk := func(delta map[string]any, stop any) map[string]any {
		return map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "stand-in",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": stop}}}
	}
	events(w, chunk(delta, nil), chunk(map[string]any{}, stop))
	fmt.Fprint(w, "data: [DONE]\n\n")
}
