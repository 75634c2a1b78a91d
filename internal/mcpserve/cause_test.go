package mcpserve_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

// TestWithdrawn: an operation knows the client's word from every other end of its call.
func TestWithdrawn(t *testing.T) {
	for name, c := range map[string]struct {
		end       func(client io.WriteCloser)
		withdrawn bool
	}{
		"cancelled": {func(client io.WriteCloser) {
			_, _ = io.WriteString(client, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"wait"}}`+"\n")
		}, true},
		"end of input": {func(client io.WriteCloser) { _ = client.Close() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cause := make(chan error, 1)
				o := tiny()
				o.Set = op.NewSet(op.New(op.Spec{Name: "wait", Title: "Wait", Doc: "Waits for its end.", ReadOnly: true, Idempotent: true},
					func(ctx context.Context, _ op.Call, _ struct{}) (struct{}, error) {
						<-ctx.Done()
						cause <- context.Cause(ctx)
						return struct{}{}, ctx.Err()
					}))
				in, client := io.Pipe()
				done := make(chan error, 1)
				go func() { done <- mcpserve.New(o).Serve(t.Context(), in, io.Discard) }()
				for _, line := range []string{
					`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + `}`,
					`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
					`{"jsonrpc":"2.0","id":"wait","method":"tools/call","params":` + toolCall("wait", "{}") + `}`,
				} {
					if _, err := io.WriteString(client, line+"\n"); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				c.end(client)
				if err := <-cause; errors.Is(err, op.ErrWithdrawn) != c.withdrawn {
					t.Errorf("the cause is %v", err)
				}
				_ = client.Close()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
