package main

import (
	"context"
	"errors"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/oauth"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/policy"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/overview"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/fault"
)

// authority is the owner's rules as they are now.
type authority struct {
	store  *state.Store
	run    bool // the owner started this run as trusted
	now    func() time.Time
	remote bool // callers are clients that the owner let in; else the owner's own
}

var _ gate.Authority = authority{}

// Principal knows the owner's own client, or the bearer of a token whose grant lives.
func (a authority) Principal(ctx context.Context, caller string) (contract.Principal, error) {
	if !a.remote {
		if caller != contract.LocalGrant {
			return contract.Principal{}, nobody()
		}
		return contract.LocalOwner(), nil
	}
	c, ok := oauth.ParseCaller(caller)
	if !ok {
		return contract.Principal{}, nobody()
	}
	if !a.now().Before(c.Expires) { // it may have waited
		return contract.Principal{}, fault.New(contract.AuthRequired, "the token has ended").WithHint("connect again")
	}
	scopes, err := granted(ctx, a.store, c.Grant, c.Client)
	return contract.Principal{GrantID: c.Grant, ClientID: c.Client, Scopes: c.Scopes.And(scopes)}, err
}

// granted is what a grant that lives gives to the client it was made for; AUTH_REQUIRED when
// it does not live, or is another client's.
func granted(ctx context.Context, store *state.Store, grant, client string) (contract.Scopes, error) {
	g, err := store.Grant(ctx, grant)
	if err == nil && g.Client != client {
		err = nobody()
	}
	return g.Scopes, err
}

func nobody() error { return fault.New(contract.AuthRequired, "nobody is known by that name") }

// standing is how far callers are trusted on a workspace.
func (a authority) standing(ctx context.Context, workspace string) (contract.Trust, contract.AccessMode, error) {
	now, err := a.store.Authority(ctx, workspace, "")
	return policy.Trust(now.Trust, now.AccessMode, a.run), now.AccessMode, err
}

// Standing is what the owner granted.
func (a authority) Standing(ctx context.Context, p contract.Principal, workspace string) (gate.Standing, error) {
	now, err := a.store.Authority(ctx, workspace, p.ClientID)
	if err != nil {
		return gate.Standing{}, err
	}
	return gate.Standing{
		Scopes:  policy.Scopes(p, now.AccessMode, now.ClientScopes),
		Trust:   policy.Trust(now.Trust, now.AccessMode, a.run),
		Version: now.PolicyVersion,
	}, nil
}

// choose is what project_overview answers to a caller that may read other projects than the
// active one.
func (s *served) choose(ctx context.Context, p contract.Principal) (*gate.Choice, error) {
	list, err := s.projects(ctx, p)
	if err != nil {
		return nil, err
	}
	var ready []overview.Project
	for _, x := range list {
		if x.Availability == string(state.Ready) {
			ready = append(ready, x)
		}
	}
	if len(ready) == 0 {
		return nil, nil
	}
	_, mode, err := s.rules().standing(ctx, "")
	if err != nil {
		return nil, err
	}
	return overview.Choose(ready, mode), nil
}

// grants tells whether what a client scheduled may still run.
type grants struct{ store *state.Store }

var _ schedule.Grants = grants{}

func (g grants) MayRun(ctx context.Context, grant, client, workspace string) (bool, error) {
	scopes, err := granted(ctx, g.store, grant, client)
	if errors.Is(err, contract.AuthRequired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := authority{store: g.store}.Standing(ctx, contract.Principal{GrantID: grant, ClientID: client, Scopes: scopes}, workspace)
	return now.Scopes.Has(contract.ScopeExec), err
}
