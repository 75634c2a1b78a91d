package oauth

import (
	"context"

	"localmcp/dodo/internal/ground/state"
)

// AddClientOptions describe a client that the owner registers.
type AddClientOptions struct {
	Name      string
	Redirects []string
	Public    bool // no secret: PKCE alone
}

// AddedClient is a registered client and its secret, which nobody can read again.
type AddedClient struct {
	Client state.OAuthClient
	Secret string // empty for a public one
}

// AddClient registers a client for the owner.
func AddClient(ctx context.Context, store *state.Store, o AddClientOptions) (AddedClient, error) {
	return AddedClient{}, nil
}
