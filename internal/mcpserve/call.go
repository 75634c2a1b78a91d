package mcpserve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// codeCancelled is the code of a call whose client no longer wants it.
const codeCancelled fault.Code = "cancelled"

// handler runs one operation for the SDK. It never returns an error: what fails is
// a tool result, so that the model can read it.
func (s *Server) handler(o op.Op) mcp.ToolHandler {
	name := o.Spec().Name
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, release := caused(ctx)
		defer release()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return s.failure(name, whyOver(ctx, ctx.Err())), nil
		}
		call := op.Call{Op: name, Caller: s.opts.Caller, Args: req.Params.Arguments}
		if p := newProgress(ctx, req); p != nil {
			call.Progress = p.report
			defer p.stop()
		}
		basis := s.keep.basis(name) // before: what changes meanwhile may be in the answer
		out, err := s.opts.Runner.Run(ctx, call)
		if err != nil {
			return s.failure(name, whyOver(ctx, err)), nil
		}
		res, err := s.shape(name, basis, out, reader{
			links: links(req),
			whole: slices.Contains(s.opts.Whole, clientName(req)),
		})
		if err != nil {
			return s.failure(name, err), nil
		}
		return res, nil
	}
}

// whyOver gives a call that did nothing but end with its context a failure of its own.
func whyOver(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, context.Canceled) || fault.From(err).Code != fault.Internal:
		return err
	case errors.Is(context.Cause(ctx), op.ErrEnding):
		return fault.New(codeCancelled, "the program is ending, and did not finish the call").WithHint("Connect again, then call again.")
	}
	return fault.New(codeCancelled, "the call was cancelled")
}

// failure is a failed call as the model and the program read it.
func (s *Server) failure(name string, err error) *mcp.CallToolResult {
	f := fault.From(err)
	if f.Err != nil {
		s.opts.Log.Warn("call failed", "op", name, "code", string(f.Code), "cause", f.Err)
	}
	body := struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
	}{string(f.Code), f.Error(), f.Hint}
	data, _ := op.Encode(body)
	text := body.Code + ": " + body.Message
	if f.Code == op.InvalidArgument {
		text = "Input validation error: Invalid arguments for tool " + name + ": " + body.Message
	}
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	return &mcp.CallToolResult{
		IsError:           true,
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: data,
	}
}

// links reports whether the client's revision knows resource links.
func links(req *mcp.CallToolRequest) bool { return req.ProtocolVersion() >= "2025-06-18" }

func clientName(req *mcp.CallToolRequest) string {
	if c := req.ClientInfo(); c != nil {
		return c.Name
	}
	return ""
}

// progress sends notifications for one call: ever increasing, not too often, and
// none after the answer.
type progress struct {
	ctx     context.Context
	session *mcp.ServerSession
	token   any

	mu   sync.Mutex // guards what follows
	done bool
	last float64
	sent time.Time
}

const progressPause = 100 * time.Millisecond

func newProgress(ctx context.Context, req *mcp.CallToolRequest) *progress {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return &progress{ctx: ctx, session: req.Session, token: token, last: -1}
}

func (p *progress) report(done, total float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	finished := total > 0 && done >= total
	if p.done || done <= p.last || !finished && time.Since(p.sent) < progressPause {
		return
	}
	p.last, p.sent = done, time.Now()
	// A client that went away is noticed by the connection, not here.
	_ = p.session.NotifyProgress(p.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: p.token, Progress: done, Total: total, Message: message,
	})
}

func (p *progress) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
}
