package egress

import (
	"net"
	"sync"
	"time"
)

// bounded is a listener with a bound on how many of its connections are there at once. Those
// that come on top of it wait in the kernel.
type bounded struct {
	net.Listener
	idle  time.Duration
	room  chan struct{}
	once  sync.Once
	ended chan struct{}
}

func newBounded(l net.Listener, most int, idle time.Duration) *bounded {
	return &bounded{Listener: l, idle: idle, room: make(chan struct{}, most), ended: make(chan struct{})}
}

// Accept waits for room and for a connection.
func (l *bounded) Accept() (net.Conn, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.ended:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &unhurriedConn{Conn: c, idle: l.idle, ended: sync.OnceFunc(func() { <-l.room })}, nil
}

// Close ends the waiting, too.
func (l *bounded) Close() error {
	l.once.Do(func() { close(l.ended) })
	return l.Listener.Close()
}
