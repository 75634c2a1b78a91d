//go:build conformance

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/mcpserve"
)

const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// tool is one of the suite's.
func tool(name, schema string, h func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) mcpserve.FixtureTool {
	return mcpserve.FixtureTool{Tool: &mcp.Tool{Name: name, Description: "A tool of the conformance suite.", InputSchema: json.RawMessage(schema)}, Handler: h}
}

// always is a tool with one answer.
func always(name string, content ...mcp.Content) mcpserve.FixtureTool {
	return tool(name, noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: content}, nil
	})
}

func text(format string, args ...any) mcp.Content {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

func say(format string, args ...any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(format, args...)}}
}

func embedded(uri, mime, words string) mcp.Content {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mime, Text: words}}
}

// picture is a PNG of one dot.
func picture() []byte {
	dot := image.NewRGBA(image.Rect(0, 0, 1, 1))
	dot.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	_ = png.Encode(&b, dot) // into memory
	return b.Bytes()
}

// sound is a WAV of silence: 8 samples.
func sound() []byte {
	b := append([]byte("RIFF"), 44, 0, 0, 0)
	b = append(b, "WAVEfmt "...)
	for _, v := range []any{uint32(16), uint16(1), uint16(1), uint32(8000), uint32(8000), uint16(1), uint16(8)} {
		b, _ = binary.Append(b, binary.LittleEndian, v) // numbers alone
	}
	b = append(append(b, "data"...), 8, 0, 0, 0)
	return append(b, bytes.Repeat([]byte{128}, 8)...)
}

// dialectSchema has the words of JSON Schema 2020-12 that must come through as they are.
const dialectSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"}, "email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]}, "else": {"required": ["email"]},
	"additionalProperties": false
}`

const headerSchema = `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"],"additionalProperties":false}`

// tools are those that no operation can be. sdk is the server they are in.
func tools(sdk func() *mcp.Server) []mcpserve.FixtureTool {
	picture := &mcp.ImageContent{Data: picture(), MIMEType: "image/png"}
	all := []mcpserve.FixtureTool{
		always("test_image_content", picture),
		always("test_audio_content", &mcp.AudioContent{Data: sound(), MIMEType: "audio/wav"}),
		always("test_embedded_resource", embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
		always("test_multiple_content_types", text("Multiple content types test:"), picture,
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)),
		tool("json_schema_2020_12_tool", dialectSchema, echo),
		tool("test_x_mcp_header", headerSchema, echo),
		tool("test_tool_with_logging", noArguments, logging),
		tool("test_logging_tool", noArguments, logging),
		tool("test_missing_capability", noArguments, needsSampling),
		always("test_reconnection", text("the stream was not ended meanwhile")),
	}
	all = append(all, asking()...)
	var again mcpserve.FixtureTool // adding what is there is a change, and clients are told
	again = tool("test_trigger_tool_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		sdk().AddTool(again.Tool, again.Handler)
		return say("the tools changed"), nil
	})
	prompts := tool("test_trigger_prompt_change", noArguments, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		addPrompts(sdk())
		return say("the prompts changed"), nil
	})
	return append(all, again, prompts)
}

func echo(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return say("%s", r.Params.Arguments), nil
}

// logging tells what it does while it does it.
func logging(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for i, words := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			time.Sleep(pause)
		}
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: words}); err != nil {
			return nil, err
		}
	}
	return say("done"), nil
}

// needsSampling refuses who cannot sample.
func needsSampling(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if c := r.ClientCapabilities(); c != nil && c.Sampling != nil {
		return say("you can sample"), nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client cannot sample", Data: data}
}
