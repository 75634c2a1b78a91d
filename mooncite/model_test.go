package main

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

// A model stands in for the one behind a client, on the loopback interface. It speaks the
// three ways the clients speak, and always does the same: it calls mooncite_recall, then
// mooncite_inspect with the first evidence id it was given, then says that it is done.
type model struct {
	*httptest.Server

	mu      sync.Mutex // guards what follows
	tools   []string   // what the last request offered
	results []string   // of tools, in their order
	strange []string   // requests it did not understand
}

const (
	modelQuery  = "ECONNRESET"
	modelAnswer = "That was all I wanted to know."
)

func newModel(t *testing.T) *model {
	m := &model{}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

var evidencePattern = regexp.MustCompile(`mooncite:[a-z-]+:[0-9a-f]{24}:[0-9a-f]{24}:[0-9a-f]{24}:\d+`)

var devicePattern = regexp.MustCompile(`xd://mcp__mooncite_[a-z]+\b`)

// A move is what the model does next: a call, or the answer when Name is empty.
type move struct {
	Name string
	Args map[string]any
}

// next decides by what the tools have answered so far.
func (m *model) next(tools, results []string) move {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = tools
	if len(results) > len(m.results) {
		m.results = results
	}
	named := func(suffix string) string {
		for _, name := range tools {
			if strings.HasSuffix(name, suffix) || name == "xd://mcp__"+suffix {
				return name
			}
		}
		return ""
	}
	switch len(results) {
	case 0:
		return move{named("mooncite_recall"), map[string]any{"query": modelQuery}}
	case 1:
		return move{named("mooncite_inspect"), map[string]any{"evidence_id": evidencePattern.FindString(results[0])}}
	}
	return move{}
}

// ServeHTTP answers as the way of speaking asks for.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
func (m *model) messages(w http.ResponseWriter, body []byte) {
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
	next := move{}
	if len(tools) > 0 { // side questions, such as for a title, have none
		next = m.next(tools, results)
	}
	block, delta, stop := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": modelAnswer}, "end_turn"
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
func (m *model) responses(w http.ResponseWriter, body []byte) {
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
	item := map[string]any{"type": "message", "id": "msg", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": modelAnswer}}}
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
func (m *model) completions(w http.ResponseWriter, body []byte) {
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
	devices := devicePattern.FindAllString(string(body), -1)
	next := m.next(append(tools, devices...), results)
	if slices.Contains(devices, next.Name) {
		content, err := json.Marshal(next.Args)
		if err != nil {
			panic(err)
		}
		next = move{"write", map[string]any{"path": next.Name, "content": string(content)}}
	}
	delta, stop := map[string]any{"role": "assistant", "content": modelAnswer}, "stop"
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

// forget makes it begin anew.
func (m *model) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools, m.results, m.strange = nil, nil, nil
}

// asked wants the model to have got a recall with evidence and its verified text, and the
// client to have shown what it said at last.
func (m *model) asked(t *testing.T, client ran) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.results) < 2 || !strings.Contains(m.results[0], modelQuery) || !strings.Contains(m.results[1], "verified") {
		t.Errorf("the tools %v answered the model %.3000q; requests it did not know: %v", m.tools, m.results, m.strange)
	}
	if client.status != 0 || !strings.Contains(client.stdout, modelAnswer) {
		t.Errorf("the client ends with %d and says %.3000s\n%.3000s", client.status, client.stdout, client.stderr)
	}
}
