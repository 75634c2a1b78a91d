//go:build conformance

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addResources adds those that the suite reads.
func addResources(s *mcp.Server) {
	fixed := func(c mcp.ResourceContents) {
		s.AddResource(&mcp.Resource{URI: c.URI, Name: strings.TrimPrefix(c.URI, "test://"), Description: "A resource of the conformance suite.", MIMEType: c.MIMEType},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&c}}, nil
			})
	}
	fixed(mcp.ResourceContents{URI: "test://static-text", MIMEType: "text/plain", Text: "This is the content of the static text resource."})
	fixed(mcp.ResourceContents{URI: "test://static-binary", MIMEType: "image/png", Blob: picture()})
	fixed(mcp.ResourceContents{URI: "test://watched-resource", MIMEType: "text/plain", Text: "It never changes."})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "A template of the conformance suite.", MIMEType: "application/json"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			data, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(data)}}}, nil
		})
}

// addPrompts adds those that the suite gets.
func addPrompts(s *mcp.Server) {
	prompt := func(name string, arguments []string, content func(args map[string]string) []mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "A prompt of the conformance suite."}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: a, Description: "An argument.", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return messages(content(r.Params.Arguments)...), nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{text("This is a simple prompt for testing.")}
	})
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []mcp.Content {
		return []mcp.Content{embedded(a["resourceUri"], "text/plain", "Embedded resource content for testing."), text("Please process the embedded resource above.")}
	})
	prompt("test_prompt_with_image", nil, func(map[string]string) []mcp.Content {
		return []mcp.Content{&mcp.ImageContent{Data: picture(), MIMEType: "image/png"}, text("Please analyze the image above.")}
	})
	s.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks."},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			q := round{"user_context": form("What context should the prompt use?", field("context", "string"))}
			if !q.answered(r.Params.InputResponses) {
				return &mcp.GetPromptResult{InputRequests: q.askable(r.ClientCapabilities())}, nil
			}
			return messages(text("%s", fmt.Sprint(words(r.Params.InputResponses)))), nil
		})
}

func messages(all ...mcp.Content) *mcp.GetPromptResult {
	res := &mcp.GetPromptResult{}
	for _, c := range all {
		res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
	}
	return res
}
