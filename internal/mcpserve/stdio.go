package mcpserve

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Serve runs one session until in ends or ctx is done, and returns within two
// seconds of that. Handlers that ignore their cancelled context are left behind.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	_, err := s.Resume(ctx, nil, in, out)
	return err
}

// ServeStdio serves the process's own streams until the input ends, the process is
// told to stop, or its parent is gone. From then on nothing but the protocol reaches
// the real standard output: os.Stdout becomes standard error. A main that calls it
// should return right after.
func (s *Server) ServeStdio(ctx context.Context) error {
	_, err := s.ResumeStdio(ctx, nil)
	return err
}

// ResumeStdio is [Server.ServeStdio] as [Server.Resume] is [Server.Serve].
func (s *Server) ResumeStdio(ctx context.Context, state []byte) (next []byte, err error) {
	out := os.Stdout
	os.Stdout = os.Stderr
	// A reader that went away is an error of Write, not the sudden end of us. The
	// signal is caught, not ignored: children would inherit that.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, unwatch := UntilOrphaned(ctx)
	defer unwatch()
	return s.Resume(ctx, state, os.Stdin, out)
}

// parentPause is how often the parent is looked at. A client that dies usually
// closes the pipe; this is for one whose pipe somebody else still holds.
const parentPause = time.Second

// UntilOrphaned returns a context that is also done, within a second, when the process
// that started this one is gone. stop ends the watching.
func UntilOrphaned(ctx context.Context) (orphaned context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(parentPause)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}
}
