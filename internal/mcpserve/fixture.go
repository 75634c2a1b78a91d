//go:build conformance

package mcpserve

import (
	"maps"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A FixtureTool is a tool that is no operation.
type FixtureTool struct {
	*mcp.Tool
	Handler mcp.ToolHandler
}

// NewFixture is New for the official conformance suite, in builds for it alone: beside the
// operations it has tools of other kinds, and with changes what the SDK is told. The SDK's
// server is for what else the suite asks for.
func NewFixture(o Options, tools []FixtureTool, with func(*mcp.ServerOptions)) (*Server, *mcp.Server) {
	s := prepare(o)
	sdk := s.sdkOptions()
	with(sdk)
	s.build(sdk)
	own := s.tools
	s.tools = func() map[string]shown {
		all := maps.Clone(own())
		for i, t := range tools {
			all[t.Name] = shown{t.Tool, len(own()) + i}
		}
		return all
	}
	for _, t := range tools {
		s.sdk.AddTool(t.Tool, t.Handler)
	}
	return s, s.sdk
}
