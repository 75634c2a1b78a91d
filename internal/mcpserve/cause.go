package mcpserve

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"localmcp/internal/op"
)

// connKey is under which a call's context has the connection it came by.
type connKey struct{}

// caused is the context of a call that ends with the cause operations know: [op.ErrWithdrawn]
// when the client cancelled the request, [op.ErrEnding] when the session is about to end. Of the
// modern era over HTTP, where the end of a stream is the cancellation, nobody can tell a client
// that took its call back from one that was lost on the way: there it has no cause.
func (s *Server) caused(ctx context.Context, req *mcp.CallToolRequest) (called context.Context, release func()) {
	ending, named := (<-chan struct{})(s.over), true
	if c, ours := ctx.Value(connKey{}).(*conn); ours {
		ending = c.ending
	} else {
		named = !modern(req)
	}
	called, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if cause == context.Canceled && named { // the SDK names a cause for every other end
				cause = op.ErrWithdrawn
			}
			cancel(cause)
		case <-ending:
			cancel(op.ErrEnding)
		case <-called.Done():
		}
	}()
	return called, func() {
		cancel(nil)
		<-watched
	}
}
