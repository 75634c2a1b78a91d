//go:build conformance

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

type nothing struct{}

type said struct {
	Words string `json:"text" doc:"What is said."`
}

// Text is what is said.
func (s said) Text() string { return s.Words }

const pause = 20 * time.Millisecond // between what a tool tells on its way

// newServer has what can be an operation as one, so that it goes the whole way, and the rest
// as the SDK has it.
func newServer(log *slog.Logger) *mcpserve.Server {
	simple := op.New(op.Spec{Name: "test_simple_text", Title: "Text", Doc: "Says a sentence.", ReadOnly: true, Idempotent: true},
		func(context.Context, op.Call, nothing) (said, error) {
			return said{"This is a simple text response for testing."}, nil
		})
	failing := op.New(op.Spec{Name: "test_error_handling", Title: "Error", Doc: "Fails.", ReadOnly: true, Idempotent: true},
		func(context.Context, op.Call, nothing) (said, error) {
			return said{}, fault.New("on_purpose", "this tool fails on purpose")
		})
	steps := op.New(op.Spec{Name: "test_tool_with_progress", Title: "Progress", Doc: "Tells how far it is.", ReadOnly: true, Idempotent: true},
		func(_ context.Context, c op.Call, _ nothing) (said, error) {
			for _, at := range []float64{0, 50, 100} {
				c.Report(at, 100, "on the way")
				time.Sleep(100 * time.Millisecond) // more often than that nobody is told
			}
			return said{"done"}, nil
		})
	var sdk *mcp.Server
	s, sdk := mcpserve.NewFixture(mcpserve.Options{
		Name: "conformance", Title: "Conformance", Version: "1.0.0", Set: op.NewSet(simple, failing, steps), Log: log,
	}, tools(func() *mcp.Server { return sdk }), func(o *mcp.ServerOptions) {
		o.Capabilities.Tools.ListChanged = true
		o.Capabilities.Logging = &mcp.LoggingCapabilities{}
		o.CompletionHandler = func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"test one", "test two"}, Total: 2}}, nil
		}
		o.SubscribeHandler = func(context.Context, *mcp.SubscribeRequest) error { return nil }
		o.UnsubscribeHandler = func(context.Context, *mcp.UnsubscribeRequest) error { return nil }
	})
	addResources(sdk)
	addPrompts(sdk)
	return s
}
