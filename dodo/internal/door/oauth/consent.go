package oauth

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
)

// ConsentStatus is how far a request for consent is.
type ConsentStatus string

// The statuses.
const (
	ConsentPending  ConsentStatus = "pending"
	ConsentApproved ConsentStatus = "approved"
	ConsentDenied   ConsentStatus = "denied"
	ConsentExpired  ConsentStatus = "expired"
)

// A Consent is a login that waits for the owner.
type Consent struct {
	ID           string
	Phrase       string // the same on the page and in the list: the owner compares them
	ClientID     string
	ClientName   string
	RedirectHost string
	Redirect     string
	Scopes       []string
	Resource     string
	AccessMode   contract.AccessMode
	Created      time.Time
	Expires      time.Time
	Status       ConsentStatus
	LoopbackOnly bool // any program of this machine can say that it is this client
}

// Pending are the requests that wait, the oldest first.
func (s *Server) Pending() []Consent { return nil }

// Approve is the owner's yes.
func (s *Server) Approve(ctx context.Context, id string) (Consent, error) { return Consent{}, nil }

// Deny is the owner's no.
func (s *Server) Deny(ctx context.Context, id string) (Consent, error) { return Consent{}, nil }
