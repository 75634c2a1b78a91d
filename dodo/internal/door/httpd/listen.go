package httpd

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// mostConnections is how many connections may be open at a time. For one more, the one that
// has been silent for longest makes room, between requests or before it has sent one; while
// all are being answered it waits.
const mostConnections = 1024

// A Listener is a bound port of this machine.
type Listener struct {
	net.Listener
	places chan struct{}
	quiet  chan struct{} // has something when a connection fell silent

	mu     sync.Mutex // guards what follows
	silent list.List  // of *placed, the longest silent first
	at     map[*placed]*list.Element
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
	return &Listener{
		Listener: l, places: make(chan struct{}, mostConnections), quiet: make(chan struct{}, 1), at: map[*placed]*list.Element{},
	}, nil
}

// Port is the one that was bound.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Accept waits for a connection, and for a place for it.
func (l *Listener) Accept() (net.Conn, error) {
	l.place()
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &placed{Conn: c, of: l, leave: sync.OnceFunc(func() { <-l.places })}, nil
}

// place waits for a place.
func (l *Listener) place() {
	for {
		select {
		case l.places <- struct{}{}:
			return
		default:
		}
		l.makeRoom()
		select {
		case l.places <- struct{}{}:
			return
		case <-l.quiet:
		}
	}
}

// makeRoom ends the connection that has been silent for longest.
func (l *Listener) makeRoom() {
	l.mu.Lock()
	first := l.silent.Front()
	l.mu.Unlock()
	if first != nil {
		_ = first.Value.(*placed).Close() // it has no place any more
	}
}

// heard notes whether a connection is silent: net/http calls it so until the head of a request
// has come.
func (l *Listener) heard(p *placed, silent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.at[p]; e != nil {
		l.silent.Remove(e)
		delete(l.at, p)
	}
	if !silent {
		return
	}
	l.at[p] = l.silent.PushBack(p)
	select {
	case l.quiet <- struct{}{}:
	default:
	}
}

// connState is for [http.Server].
func connState(c net.Conn, s http.ConnState) {
	if p, ok := c.(*placed); ok {
		p.of.heard(p, s == http.StateNew || s == http.StateIdle)
	}
}

// placed is a connection that gives its place back.
type placed struct {
	net.Conn
	of    *Listener
	leave func()
}

// Close ends the connection.
func (p *placed) Close() error {
	defer p.leave()
	p.of.heard(p, false)
	return p.Conn.Close()
}
