package state

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// A Grant is what the owner granted a client for the installation.
type Grant struct {
	ID, Client string
	Scopes     contract.Scopes // none when the row names something unknown
	Resource   string
	Created    time.Time
	Expires    time.Time
	Revoked    time.Time // zero while it holds
	Reason     string    // why it was revoked
}

// Grant is the live grant of an id. What is unknown, revoked or over, has no marker or no
// client any more gives AUTH_REQUIRED.
func (s *Store) Grant(ctx context.Context, id string) (Grant, error) {
	return Grant{}, fault.New(contract.AuthRequired, "the login is over")
}

// Grants are all grants, the newest first, with those that ended.
func (s *Store) Grants(ctx context.Context) ([]Grant, error) { return nil, nil }

// RevokeGrant ends a grant with all its tokens; NOT_FOUND when there is none. One that ended
// already is no fault.
func (s *Store) RevokeGrant(ctx context.Context, id string) (Grant, error) { return Grant{}, nil }
