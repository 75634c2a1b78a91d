//go:build conformance

package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/mcpserve"
)

// form asks the client's person.
func form(message, schema string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

// sample asks the client's model.
func sample(words string, most int64) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{MaxTokens: most, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}}}
}

// field is a form's schema with one field.
func field(name, kind string) string {
	return `{"type":"object","properties":{"` + name + `":{"type":"` + kind + `"}},"required":["` + name + `"]}`
}

const (
	userSchema = `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},
		"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
	defaultsSchema = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},
		"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","default":true}}}`
	choicesSchema = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// asking are the tools that ask the client something: over its session, or in rounds.
func asking() []mcpserve.FixtureTool {
	const (
		message = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`
		prompt  = `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`
	)
	return []mcpserve.FixtureTool{
		tool("test_elicitation", message, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, r, argument(r, "message"), userSchema)
		}),
		tool("test_elicitation_sep1034_defaults", noArguments, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, r, "Is that right?", defaultsSchema)
		}),
		tool("test_elicitation_sep1330_enums", noArguments, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, r, "Which ones?", choicesSchema)
		}),
		tool("test_sampling", prompt, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			res, err := r.Session.CreateMessage(ctx, sample(argument(r, "prompt"), 100))
			if err != nil {
				return nil, err
			}
			return say("LLM response: %s", words(res)), nil
		}),
		rounds("test_input_required_result_elicitation", round{"user_name": form("What is your name?", field("name", "string"))}),
		rounds("test_input_required_result_sampling", round{"capital_question": sample("What is the capital of France?", 100)}),
		rounds("test_input_required_result_list_roots", round{"client_roots": &mcp.ListRootsParams{}}),
		rounds("test_input_required_result_multiple_inputs", round{
			"user_name": form("What is your name?", field("name", "string")), "greeting": sample("Generate a greeting", 50), "client_roots": &mcp.ListRootsParams{},
		}),
		rounds("test_input_required_result_request_state", round{"confirm": form("Please confirm", field("ok", "boolean"))}),
		rounds("test_input_required_result_tampered_state", round{"confirm": form("Please confirm", field("ok", "boolean"))}),
		rounds("test_input_required_result_multi_round",
			round{"step1": form("Step 1: What is your name?", field("name", "string"))},
			round{"step2": form("Step 2: What is your favorite color?", field("color", "string"))}),
		rounds("test_input_required_result_capabilities", round{"name": form("What is your name?", field("name", "string")), "greeting": sample("Generate a greeting", 50)}),
		rounds("test_streaming_elicitation", round{"name": form("What is your name?", field("name", "string"))}),
	}
}

func argument(r *mcp.CallToolRequest, name string) string {
	var args map[string]string
	_ = json.Unmarshal(r.Params.Arguments, &args) // what is not there is empty
	return args[name]
}

func elicit(ctx context.Context, r *mcp.CallToolRequest, message, schema string) (*mcp.CallToolResult, error) {
	res, err := r.Session.Elicit(ctx, form(message, schema))
	if err != nil {
		return nil, err
	}
	return say("%s", words(res)), nil
}

// words are an answer as text.
func words(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// A round is what is asked at once.
type round map[string]mcp.InputRequest

// askable leaves out what a client did not say it can answer. One that says nothing may be
// asked everything.
func (a round) askable(c *mcp.ClientCapabilities) mcp.InputRequestMap {
	out := mcp.InputRequestMap{}
	silent := c == nil || c.Elicitation == nil && c.Sampling == nil && c.RootsV2 == nil
	for key, q := range a {
		ok := silent
		switch q.(type) {
		case *mcp.ElicitParams:
			ok = ok || c.Elicitation != nil
		case *mcp.CreateMessageParams:
			ok = ok || c.Sampling != nil
		default:
			ok = ok || c.RootsV2 != nil
		}
		if ok {
			out[key] = q
		}
	}
	return out
}

// answered reports whether every question has an answer.
func (a round) answered(got mcp.InputResponseMap) bool {
	for key := range a {
		if got[key] == nil {
			return false
		}
	}
	return true
}

// rounds is a tool that asks, round after round. Which one is next says the signed state.
func rounds(name string, all ...round) mcpserve.FixtureTool {
	return tool(name, noArguments, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		at := 0
		if s := r.Params.RequestState; s != "" {
			mark, ok := opened(s)
			if !ok || len(mark) >= len(all) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "that is no state of this server"}
			}
			at = len(mark)
		}
		if all[at].answered(r.Params.InputResponses) {
			at++
		}
		if at == len(all) {
			return say("state-ok: Hello, %s!", words(r.Params.InputResponses)), nil
		}
		return &mcp.CallToolResult{InputRequests: all[at].askable(r.ClientCapabilities()), RequestState: sealed(strings.Repeat("x", at))}, nil
	})
}

var stateKey = func() []byte { b := make([]byte, 32); _, _ = rand.Read(b); return b }()

// sealed signs a state.
func sealed(mark string) string {
	m := hmac.New(sha256.New, stateKey)
	_, _ = m.Write([]byte(mark))
	return mark + "." + hex.EncodeToString(m.Sum(nil))
}

// opened gives what was sealed.
func opened(state string) (mark string, ok bool) {
	mark, _, _ = strings.Cut(state, ".")
	return mark, hmac.Equal([]byte(sealed(mark)), []byte(state))
}
