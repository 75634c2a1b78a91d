package httpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// mostConnections is how many connections may be open at a time.
const mostConnections = 1024

// A Listener is a bound port of this machine, with places for so many connections. When all
// are taken, the connection that asked for nothing for the longest time makes room; where every
// one is being answered, a new one waits.
type Listener struct {
	net.Listener
	places int

	mu     sync.Mutex // guards what follows
	change *sync.Cond
	taken  map[*placed]time.Time // since when it asks for nothing; zero: it is being answered
	closed bool
}

// Listen binds a port of this machine; 0 is any that is free.
func Listen(port int) (*Listener, error) { return listen(port, mostConnections) }

func listen(port, places int) (*Listener, error) {
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
	out := &Listener{Listener: l, places: places, taken: map[*placed]time.Time{}}
	out.change = sync.NewCond(&out.mu)
	return out, nil
}

// Port is the one that was bound.
func (l *Listener) Port() int { return l.Addr().(*net.TCPAddr).Port }

// Accept waits for a connection, and for a place for it.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.taken) >= l.places && !l.closed {
		if idle := l.idlest(); idle != nil {
			delete(l.taken, idle)
			_ = idle.Conn.Close() // it wanted nothing
			continue
		}
		l.change.Wait()
	}
	if l.closed {
		_ = c.Close() // nobody will answer it
		return nil, net.ErrClosed
	}
	p := &placed{c, l}
	l.taken[p] = time.Now()
	return p, nil
}

// idlest is the connection that asks for nothing for the longest time.
func (l *Listener) idlest() (p *placed) {
	var since time.Time
	for x, t := range l.taken {
		if !t.IsZero() && (p == nil || t.Before(since)) {
			p, since = x, t
		}
	}
	return p
}

// Close takes no more connections. Those that are open stay.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.change.Broadcast()
	l.mu.Unlock()
	return l.Listener.Close()
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	l *Listener
}

// Close ends the connection and gives the place back.
func (p *placed) Close() error {
	p.l.mu.Lock()
	delete(p.l.taken, p)
	p.l.change.Broadcast()
	p.l.mu.Unlock()
	return p.Conn.Close()
}

// mark says whether a request of the connection is being answered. Until the whole header is
// there none is.
func (p *placed) mark(answered bool) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if _, open := p.l.taken[p]; !open {
		return
	}
	p.l.taken[p] = time.Now()
	if answered {
		p.l.taken[p] = time.Time{}
	}
	p.l.change.Broadcast()
}

// placeKey is under which a request's context has its connection.
type placeKey struct{}

func withPlace(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, placeKey{}, c)
}

// answering says that a request is being answered, until done is called.
func answering(ctx context.Context) (done func()) {
	p, ok := ctx.Value(placeKey{}).(*placed)
	if !ok { // another listener's
		return func() {}
	}
	p.mark(true)
	return func() { p.mark(false) }
}
