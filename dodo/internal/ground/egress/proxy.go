package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Bounds of a proxy.
const (
	mostConnections = 128              // at once; more wait until one ends
	mostHeader      = 32 << 10         // bytes of a request's head; of an answer's the double
	headTime        = 15 * time.Second // for a request's head
	betweenTime     = time.Minute      // between requests of one connection
	idleTime        = 5 * time.Minute  // in which nothing moves
)

// A Proxy serves HTTP clients by a dialer's rules: CONNECT to a host and port, and http
// requests whose URI is absolute. It is made for the clients of one job: what it counts is
// theirs.
//
// A host that is given as an address needs an allow entry for the address: clients that look
// names up themselves would work around the owner's rules for names.
type Proxy struct {
	dialer              *Dialer
	head, between, idle time.Duration // the bounds above
	refusals
}

// NewProxy returns a proxy over a dialer.
func NewProxy(d *Dialer) *Proxy {
	return &Proxy{dialer: d, idle: idleTime, head: headTime, between: betweenTime}
}

// Remedy says in a sentence or two how the owner lets through what was refused; empty when
// nothing would.
func (p *Proxy) Remedy() string { return p.remedy(p.dialer.rules.only) }

// Serve serves the connections of a listener until ctx ends or the listener is closed, and
// returns when all that it began has ended. It closes the listener. The listener may live
// in another network namespace: connections go out from this process's own. Call it once.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s := &serving{Proxy: p}
	transport := &http.Transport{ // Proxy stays nil: the system's is not asked
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return s.dialKept(ctx, network, address)
		},
		DisableCompression:     true, // what is sent is what the client gets
		MaxIdleConns:           16,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 2 * mostHeader,
	}
	s.forward = &httputil.ReverseProxy{
		Rewrite: rewrite, Transport: transport, FlushInterval: -1, ErrorLog: silent,
		ModifyResponse: plainAnswer, ErrorHandler: s.failed,
	}
	server := &http.Server{
		Handler:     http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, w, r) }),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState:   s.state, ErrorLog: silent, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: p.head, IdleTimeout: p.between, MaxHeaderBytes: mostHeader,
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-ctx.Done()
		_ = server.Close()
	}()
	err := server.Serve(newBounded(l, mostConnections, p.idle))
	end()
	<-closed
	_ = server.Close() // once more: a connection may have been accepted while it was closed
	s.wait()
	transport.CloseIdleConnections()
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve the proxy: %w", err)
}

// silent drops what net/http would log: all of it is about what a job's programs sent.
var silent = log.New(io.Discard, "", 0)

// serving is one run of Serve.
type serving struct {
	*Proxy
	forward *httputil.ReverseProxy

	mu    sync.Mutex // guards over, and that nothing begins once it is set
	over  bool
	began sync.WaitGroup // connections that were accepted, and what is dialed
}

// begin reports whether something may still begin. Its end must be told to began.
func (s *serving) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.began.Add(1)
	}
	return !s.over
}

// wait lets nothing begin any more, and waits for what did.
func (s *serving) wait() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.began.Wait()
}

// state counts connections. It is told of a new one before the server goes on to the next.
// One that was hijacked is given back by who hijacked it.
func (s *serving) state(_ net.Conn, to http.ConnState) {
	switch to {
	case http.StateNew:
		s.begin() // before wait, which comes after the last of them was accepted
	case http.StateClosed:
		s.began.Done()
	}
}

// dialKept connects for the transport, which keeps what it dials beyond the request that it
// was for: ctx is that of all.
func (s *serving) dialKept(ctx context.Context, network, address string) (net.Conn, error) {
	if !s.begin() {
		return nil, context.Canceled
	}
	defer s.began.Done()
	c, err := s.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &unhurriedConn{Conn: c, idle: s.idle, reads: true}, nil
}

// dial connects to what a client named.
func (s *serving) dial(ctx context.Context, network, address string) (net.Conn, error) {
	t, err := readTarget(address)
	if err != nil {
		return nil, err
	}
	if _, err := s.dialer.before(t); err != nil {
		return nil, err // what else is to be said of an address goes first
	}
	if t.name == "" && !s.dialer.rules.named(t.addr, t.port) {
		return nil, s.dialer.rules.refuse(t, "it is an address, and only hosts with a name are reached unless the owner allowed the address")
	}
	return s.dialer.dial(ctx, network, t)
}

// serve serves one request. ctx is that of all: a tunnel's client may end its way before the
// host is reached, which net/http takes for having left.
func (s *serving) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	switch u := r.URL; {
	case r.Method == http.MethodConnect:
		s.tunnel(ctx, w, r)
	case u.Scheme != "http" || u.Host == "" || u.Opaque != "":
		answer(w, http.StatusBadRequest, "This is a proxy: it takes CONNECT, and http requests whose URI is absolute.")
	case u.User != nil:
		answer(w, http.StatusBadRequest, "The URI has a user in it.")
	default:
		r.Body = &steadyBody{r.Body, http.NewResponseController(w), s.idle}
		s.forward.ServeHTTP(w, r)
	}
}

// rewrite makes the request that goes out. The host is that of the URI, which is where the
// connection goes; what a client says in the field Host is not passed on.
func rewrite(p *httputil.ProxyRequest) {
	p.Out.Host = p.In.URL.Host
	p.Out.URL.RawQuery = p.In.URL.RawQuery // which was cleaned for a server that is our own
	for name := range p.Out.Header {
		if strings.HasPrefix(name, "Proxy-") {
			p.Out.Header.Del(name)
		}
	}
	for _, name := range []string{"Connection", "Upgrade", "Http2-Settings", "Te", "Expect"} { // Expect is answered here
		p.Out.Header.Del(name)
	}
}

// plainAnswer refuses an answer that would turn the connection into something else.
func plainAnswer(r *http.Response) error {
	if r.StatusCode == http.StatusSwitchingProtocols {
		return errors.New("the server switched to another protocol")
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Proxy-") {
			r.Header.Del(name)
		}
	}
	return nil
}

// failed answers a request that was not answered by its host.
func (s *serving) failed(w http.ResponseWriter, r *http.Request, err error) {
	s.refused(w, r.URL.Host, err)
}

// refused says why there is no connection.
func (s *serving) refused(w http.ResponseWriter, host string, err error) {
	var f *fault.Error
	if !errors.As(err, &f) {
		answer(w, http.StatusBadGateway, "The host answered in a way that cannot be passed on, or the connection ended.")
		return
	}
	status := http.StatusBadGateway
	switch f.Code {
	case contract.Forbidden:
		status = http.StatusForbidden
		s.refusals.add(host, f)
	case contract.Timeout:
		status = http.StatusGatewayTimeout
	}
	answer(w, status, "dodo: "+f.Msg+"\n"+f.Hint)
}

// answer ends a connection with a sentence.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}
