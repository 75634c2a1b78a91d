package httpd

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Who is who comes with a token.
type Who struct {
	Caller string // for the calls that the request makes
	Owner  string // whose the request's session is: the login
}

// An Authorizer knows who comes, and lets in who may.
type Authorizer interface {
	// Verify says who comes with a bearer token. An error that is no *fault.Error of
	// AUTH_REQUIRED says that it could not be found out.
	Verify(ctx context.Context, bearer string) (Who, error)
	// Challenge is the value of WWW-Authenticate for what Verify said; nil: no token came.
	Challenge(refused error) string
	// Handler answers the paths of a login. Paths are patterns without a method.
	Handler() http.Handler
	Paths() []string
}

// Config is what a server is made of.
type Config struct {
	Hosts, Origins []string // that are allowed beside this machine's own and the issuer's
	Issuer         string   // the origin that clients know; empty when locked
	Port           int      // that was bound

	MCP  http.Handler
	Auth Authorizer // nil when locked
	// Locked says why nobody can come in; empty: who has a login can.
	Locked string
	// Closed says that no call is taken now: the workspace is being switched, or the server is
	// ending.
	Closed func() bool
	Health func() any // what everybody may know

	Rates Rates        // zero: the default ones
	Log   *slog.Logger // nil: none
	Now   func() time.Time
}

// Bounds of a request.
const (
	headerTime  = 30 * time.Second
	requestTime = 120 * time.Second // for answering what is no stream
	idleTime    = 2 * time.Minute   // between requests of a connection
	maxHeader   = 32 << 10          // bytes
)

// A Server answers requests.
type Server struct {
	c      Config
	names  names
	http   *http.Server
	routes http.Handler

	principals, addresses, logins buckets
	flying                        flying

	headerTime, requestTime time.Duration
}

// New returns a server. Call Serve, and Close.
func New(c Config) *Server {
	if c.Rates == (Rates{}) {
		c.Rates = DefaultRates
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{
		c: c, names: newNames(c.Hosts, c.Origins, c.Issuer, c.Port),
		principals: buckets{rate: c.Rates.Principal}, addresses: buckets{rate: c.Rates.Address}, logins: buckets{rate: c.Rates.Login},
		headerTime: headerTime, requestTime: requestTime,
	}
	s.routes = s.routing()
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ConnContext: withPlace,
		DisableGeneralOptionsHandler: true, // it would answer names that are not ours
		ErrorLog:                     log.New(quiet{c.Log}, "", 0),
	}
	return s
}

// quiet keeps what the library complains of about clients for those who look closely.
type quiet struct{ log *slog.Logger }

// Write notes a complaint.
func (q quiet) Write(b []byte) (int, error) {
	q.log.Debug("http", "complaint", string(b))
	return len(b), nil
}

// Serve answers what comes through a listener, until Close.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close takes no more connections, waits for requests that are being answered until ctx is
// done, and then ends them.
func (s *Server) Close(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return errors.Join(err, s.http.Close())
	}
	return s.http.Close()
}
