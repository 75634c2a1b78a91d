package oauth

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
	Log          *slog.Logger               // nil: nothing is logged
	Now          func() time.Time           // nil means time.Now
}

// A Server answers what clients and browsers ask on the way to a token.
type Server struct {
	cfg       Config
	now       func() time.Time
	log       *slog.Logger
	keys      *keyring
	consents  *consents
	documents *documents // nil: not offered
	mux       *http.ServeMux
	paths     []string
}

// New returns a server. It makes the signing key when there is none; keys that cannot be read
// are refused and left as they are.
func New(ctx context.Context, cfg Config) (*Server, error) {
	if why := checkIssuer(cfg.Issuer); why != "" {
		return nil, fault.New(contract.InvalidInput, "the address of the server is not usable: %s", why).
			WithHint("give an origin such as https://dodo.example.com, without a path")
	}
	if cfg.Resource != cfg.Issuer+"/mcp" {
		return nil, fault.New(contract.InvalidInput, "tokens are for the address of the server and /mcp")
	}
	s := &Server{cfg: cfg, now: cfg.Now, log: cfg.Log}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.keys, err = openKeys(ctx, cfg.Dir, s.now()); err != nil {
		return nil, err
	}
	s.consents = newConsents(s.now)
	if cfg.Fetch != nil {
		s.documents = newDocuments(cfg.Fetch, s.now)
	}
	s.route()
	return s, nil
}

// Close gives the directory of the keys back.
func (s *Server) Close() error { return s.keys.dir.Close() }

// checkIssuer says in a few words why an address cannot be the issuer's. It must be written as
// browsers write an origin: clients compare it byte by byte.
func checkIssuer(issuer string) (why string) {
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Scheme+"://"+u.Host != issuer {
		return "it is no origin"
	}
	r, why := parseRedirect(issuer)
	if why != "" {
		return why
	}
	if _, port, _ := splitPort(r.host); u.Scheme == "http" && port == "80" {
		return "it names the port that http has anyway"
	}
	return ""
}

// Handler answers the requests of [Server.Paths]. Host, Origin and rates are the caller's to
// look at.
func (s *Server) Handler() http.Handler { return s.mux }

// Paths are the patterns, without a method, that Handler answers.
func (s *Server) Paths() []string { return slices.Clone(s.paths) }

// secure says that browsers reach the server by https.
func (s *Server) secure() bool { return strings.HasPrefix(s.cfg.Issuer, "https:") }

// isResource reports whether a client means our resource (RFC 8707). Some add the slash that
// the address was typed with, or write the host in capitals; nothing else is let through.
func (s *Server) isResource(asked string) bool {
	u, err := url.Parse(asked)
	if err != nil || u.User != nil || u.Opaque != "" || strings.ContainsAny(asked, "?#") {
		return false
	}
	return strings.ToLower(u.Scheme)+"://"+strings.ToLower(u.Host)+strings.TrimSuffix(u.EscapedPath(), "/") == s.cfg.Resource
}
