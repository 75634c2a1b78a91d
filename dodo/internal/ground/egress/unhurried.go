package egress

import (
	"io"
	"net"
	"net/http"
	"time"
)

// unhurriedConn gives each write, and when reads is set each read, a time of its own: what
// goes on may take as long as it likes, what stands still ends. The server sets the time of
// its reads itself.
type unhurriedConn struct {
	net.Conn
	idle  time.Duration
	reads bool
	ended func() // is told once that it was closed; may be nil
}

// Close closes it.
func (c *unhurriedConn) Close() error {
	err := c.Conn.Close()
	if c.ended != nil {
		c.ended()
	}
	return err
}

func (c *unhurriedConn) Read(b []byte) (int, error) {
	if c.reads {
		_ = c.SetReadDeadline(time.Now().Add(c.idle))
	}
	return c.Conn.Read(b)
}

func (c *unhurriedConn) Write(b []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(c.idle))
	return c.Conn.Write(b)
}

// CloseWrite tells the other end that nothing more comes.
func (c *unhurriedConn) CloseWrite() error {
	endWrites(c.Conn)
	return nil
}

// steadyBody is a request's body whose client may be slow, but must go on.
type steadyBody struct {
	io.ReadCloser
	*http.ResponseController
	idle time.Duration
}

func (b *steadyBody) Read(p []byte) (int, error) {
	_ = b.SetReadDeadline(time.Now().Add(b.idle))
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // from here on the server waits for the next request, or for the client to leave
		_ = b.SetReadDeadline(time.Time{})
	}
	return n, err
}
