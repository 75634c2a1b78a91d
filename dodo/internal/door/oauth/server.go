package oauth

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// Config is what an authorization server is made of.
type Config struct {
	Store        *state.Store
	Dir          string                     // the installation directory; the keys are in its directory keys
	Issuer       string                     // an origin without a slash at its end: https, or http on loopback
	Resource     string                     // what tokens are for: the issuer and "/mcp"
	Registration bool                       // clients may register themselves
	Fetch        *http.Client               // reads metadata documents of clients; nil: they are not offered
	AccessMode   func() contract.AccessMode // for what the consent page says
	Log          *slog.Logger
	Now          func() time.Time // nil means time.Now
}

// A Server answers what clients and browsers ask on the way to a token.
type Server struct{ cfg Config }

// New returns a server. It makes the signing key when there is none.
func New(ctx context.Context, cfg Config) (*Server, error) { return &Server{cfg: cfg}, nil }

// Handler answers the requests of [Server.Paths]. Host, Origin and rates are the caller's to
// look at.
func (s *Server) Handler() http.Handler { return http.NotFoundHandler() }

// Paths are the patterns, without a method, that Handler answers.
func (s *Server) Paths() []string { return nil }

// Verify says who comes with a bearer token.
func (s *Server) Verify(ctx context.Context, bearer string) (Caller, error) {
	return Caller{}, fault.New(contract.AuthRequired, "no token")
}

// Challenge is the value of WWW-Authenticate for a refusal of Verify; nil: no token was sent.
func (s *Server) Challenge(f *fault.Error) string { return "" }
