package web

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
)

// mostAtOnce is how many pages are fetched at once. More wait.
const mostAtOnce = 8

// Config is what fetching is made of. Off is its zero value.
type Config struct {
	Allowed bool            // the owner's setting allowWebFetch
	Dialer  *egress.Dialer  // by the owner's rules; needed when Allowed is set
	Limits  contract.Limits // how long answers may be
	// Roots are the authorities whose certificates are believed; nil means the system's.
	Roots *x509.CertPool
}

// Service fetches pages.
type Service struct {
	Config
	transport *http.Transport
	slots     chan struct{}
}

// New returns the service.
func New(c Config) *Service {
	s := &Service{Config: c, slots: make(chan struct{}, mostAtOnce)}
	if c.Allowed {
		s.transport = &http.Transport{ // Proxy stays nil: the system's is not asked
			DialContext:            c.Dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: c.Roots},
			DisableKeepAlives:      true, // nothing of a fetch stays behind
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	return s
}

// Ops are the operations. A nil Service shows them too.
func (s *Service) Ops() []contract.Op { return []contract.Op{s.fetchURL()} }
