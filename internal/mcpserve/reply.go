package mcpserve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/op"
)

// tailRoom is kept free in a cut text for the line that says where the whole is.
const tailRoom = 300

// reader is what matters about who reads an answer.
type reader struct {
	links bool // knows resource links
	whole bool // always wants everything
}

// rendered is an answer in its two forms.
type rendered struct {
	text string
	data []byte
}

func (r rendered) fits(max int) bool { return len(r.text) <= max && len(r.data) <= max }

// render writes both forms; an answer without a text of its own is its JSON.
func render(v any) (rendered, error) {
	data, err := op.Encode(v)
	if err != nil {
		return rendered{}, fmt.Errorf("encode answer: %w", err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return rendered{}, errors.New("an answer must be a JSON object")
	}
	r := rendered{text: string(data), data: data}
	if t, ok := v.(op.Texter); ok {
		r.text = t.Text()
	}
	return r, nil
}

// shape turns an answer into a tool result. When it is too long and knows how to be
// cut, the whole is kept aside and both forms are made from the same smaller value. basis is
// what the tool's answers rested on before it ran.
func (s *Server) shape(name, basis string, out any, to reader) (*mcp.CallToolResult, error) {
	whole, err := render(out)
	if err != nil {
		return nil, err
	}
	if f, ok := out.(op.Failing); ok && f.Failed() {
		res := result(whole)
		res.IsError = true
		return res, nil
	}
	fitter, ok := out.(op.Fitter)
	if to.whole || whole.fits(s.opts.MaxReply) || !ok {
		return attach(result(whole), out), nil
	}
	detail := &op.Detail{Kind: "progressive_result"}
	if s.keep != nil {
		detail.FullResult = s.keep.put(name, basis, whole)
	}
	cut, err := render(fitter.Fit(s.opts.MaxReply-tailRoom, detail))
	if err != nil {
		return nil, err
	}
	if !cut.fits(s.opts.MaxReply) {
		s.opts.Log.Warn("a cut answer is still too long", "op", name, "text", len(cut.text), "json", len(cut.data))
	}
	full := detail.FullResult
	if full == nil {
		return result(cut), nil
	}
	cut.text += fmt.Sprintf("\n\nThis answer was cut. The whole of it (%d bytes) is the resource %s until %s.",
		full.Bytes, full.URI, full.ExpiresAt)
	res := result(cut)
	if to.links {
		size := int64(full.Bytes)
		res.Content = append(res.Content, &mcp.ResourceLink{
			URI: full.URI, Name: "full_result", Title: "The whole answer", MIMEType: "application/json", Size: &size,
			Description: "The answer of " + name + " before it was cut, kept until " + full.ExpiresAt + ".",
		})
	}
	return res, nil
}

func result(r rendered) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: r.text}},
		StructuredContent: json.RawMessage(r.data),
	}
}

// attach adds the pictures and sounds of an answer.
func attach(res *mcp.CallToolResult, out any) *mcp.CallToolResult {
	a, ok := out.(op.Attaching)
	if !ok {
		return res
	}
	for _, b := range a.Blocks() {
		if strings.HasPrefix(b.MIME, "audio/") {
			res.Content = append(res.Content, &mcp.AudioContent{Data: b.Data, MIMEType: b.MIME})
		} else {
			res.Content = append(res.Content, &mcp.ImageContent{Data: b.Data, MIMEType: b.MIME})
		}
	}
	return res
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
