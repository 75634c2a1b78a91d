package httpd

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// mostConnections is how many connections may be open at a time; more wait to be taken up.
const mostConnections = 1024

// A Listener is a bound port of this machine.
type Listener struct {
	net.Listener
	places chan struct{}
}

// Listen binds a port of this machine; 0 is any that is free.
func Listen(port int) (*Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fault.Wrap(contract.Conflict, err, "port %d of this machine is in use", port).
			WithHint("if it is dodo, `dodo status` shows it and `dodo stop` ends it; or choose another with --port")
	case errors.Is(err, syscall.EACCES):
		return nil, fault.Wrap(contract.Forbidden, err, "port %d of this machine is kept for the system", port).WithHint("choose one above 1023 with --port")
	case err != nil:
		return nil, fault.Wrap(contract.InternalError, err, "port %d of this machine cannot be opened", port)
	}
	return &Listener{l, make(chan struct{}, mostConnections)}, nil
}

// Port is the one that was bound.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Accept waits for a connection, and for a place for it.
func (l *Listener) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// placed is a connection that gives its place back.
type placed struct {
	net.Conn
	leave func()
}

// Close ends the connection.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
