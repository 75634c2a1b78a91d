package mcpserve

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Serve runs one session until in ends or ctx is done, and returns within two
// seconds of that. Handlers that ignore their cancelled context are left behind.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := newConn(in, out, s.opts.MaxFrame, s.opts.Drain)
	defer c.Close()
	session, err := s.sdk.Connect(ctx, c, nil)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = session.Wait() // how a session ended is not a failure of ours
	}()
	select {
	case <-done:
		return nil
	case <-c.ended:
	case <-ctx.Done():
		c.Close()
	}
	t := time.NewTimer(linger)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	return nil
}

// ServeStdio serves the process's own streams until the input ends, the process is
// told to stop, or its parent is gone. From then on nothing but the protocol reaches
// the real standard output: os.Stdout becomes standard error. A main that calls it
// should return right after.
func (s *Server) ServeStdio(ctx context.Context) error {
	out := os.Stdout
	os.Stdout = os.Stderr
	// A reader that went away is an error of Write, not the sudden end of us. The
	// signal is caught, not ignored: children would inherit that.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watchParent(ctx, cancel)
	return s.Serve(ctx, os.Stdin, out)
}

// parentPause is how often the parent is looked at. A client that dies usually
// closes the pipe; this is for one whose pipe somebody else still holds.
const parentPause = time.Second

func watchParent(ctx context.Context, gone func()) {
	parent := os.Getppid()
	tick := time.NewTicker(parentPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				gone()
				return
			}
		}
	}
}
