package egress

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// tunnel joins a client with the host that it names.
func (s *serving) tunnel(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		answer(w, http.StatusBadRequest, "A CONNECT request has no body.")
		return
	}
	// What the request line says, and not what was made of it: there is no path in it, no
	// user, and the field Host has no say.
	out, err := s.dial(ctx, "tcp", r.RequestURI)
	if err != nil {
		s.refused(w, r.RequestURI, err)
		return
	}
	defer out.Close()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		answer(w, http.StatusInternalServerError, "The connection cannot be taken over.")
		return
	}
	defer s.began.Done() // the server has let go of it
	defer in.Close()
	_ = in.SetDeadline(time.Time{})
	if _, err := io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(ctx, s.idle, stream{in, buffered.Reader}, stream{out, out})
}

// A stream is one side of a tunnel. Reading may begin with what was read already.
type stream struct {
	net.Conn
	from io.Reader
}

// join copies both ways until both have ended, nothing has moved for a time, or ctx ends.
// The end of one way is passed on, so that the other can still end by itself.
func join(ctx context.Context, idle time.Duration, a, b stream) {
	both := func() {
		_ = a.Close()
		_ = b.Close()
	}
	defer context.AfterFunc(ctx, both)()
	quiet := time.AfterFunc(idle, both)
	defer quiet.Stop()
	var ways sync.WaitGroup
	way := func(to, from stream) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.from.Read(buf)
			quiet.Reset(idle)
			if n > 0 {
				if _, err := to.Write(buf[:n]); err != nil {
					both() // nobody takes it: the other way is of no use
					return
				}
				quiet.Reset(idle)
			}
			if err != nil {
				endWrites(to.Conn)
				return
			}
		}
	}
	ways.Go(func() { way(b, a) })
	way(a, b)
	ways.Wait()
}

// endWrites tells the other end that nothing more comes; a connection that cannot say that
// ends.
func endWrites(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
