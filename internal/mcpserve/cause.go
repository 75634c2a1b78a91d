package mcpserve

import (
	"context"

	"localmcp/internal/op"
)

// connKey is under which a call's context has the connection it came by.
type connKey struct{}

// caused is the context of a call that ends with the cause operations know: [op.ErrWithdrawn]
// when the client cancelled the request, [op.ErrEnding] when the session is about to end. One that
// came by another transport than ours keeps its own: there the end of a stream looks the same.
func caused(ctx context.Context) (called context.Context, release func()) {
	c, ours := ctx.Value(connKey{}).(*conn)
	if !ours {
		return ctx, func() {}
	}
	called, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if cause == context.Canceled { // the SDK names a cause for every other end
				cause = op.ErrWithdrawn
			}
			cancel(cause)
		case <-c.ending:
			cancel(op.ErrEnding)
		case <-called.Done():
		}
	}()
	return called, func() {
		cancel(nil)
		<-watched
	}
}
