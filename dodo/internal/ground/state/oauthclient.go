package state

import (
	"context"
	"encoding/json"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
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

// Bounds of clients that registered themselves and that the owner has not said yes to.
const (
	// WaitingLife is how long one may begin logins.
	WaitingLife = 10 * time.Minute
	// MostWaiting is how many there are at a time.
	MostWaiting = 20
	// waitingRow is how long its row stays: a login that it began may still be answered.
	waitingRow = 2 * WaitingLife
)

const clientColumns = "id, kind, name, redirects, method, secret, refresh, application, created, coalesce(approved, 0)"

func scanClient(scan scanner) (c OAuthClient, err error) {
	var redirects string
	var created, approved int64
	err = scan(&c.ID, &c.Kind, &c.Name, &redirects, &c.AuthMethod, &c.Secret, &c.Refresh, &c.Application, &created, &approved)
	if json.Unmarshal([]byte(redirects), &c.Redirects) != nil {
		c.Redirects = nil
	}
	c.Created = timeOf(created)
	if approved != 0 {
		c.Approved = timeOf(approved)
	}
	return c, err
}

func (s *Store) findClient(ctx context.Context, c *sqlitedb.Conn, id string) (o OAuthClient, found bool, err error) {
	err = c.Each(ctx, "SELECT "+clientColumns+" FROM clients WHERE id = ?", []any{id}, func(scan scanner) error {
		found = true
		o, err = scanClient(scan)
		return err
	})
	return o, found, err
}

// over says that a client registered itself and had its time without a yes of the owner.
func (s *Store) over(o OAuthClient) bool {
	return o.Kind == ClientDynamic && o.Approved.IsZero() && !s.now().Before(o.Created.Add(WaitingLife))
}

// OAuthClient is the client of an id; NOT_FOUND when there is none.
func (s *Store) OAuthClient(ctx context.Context, id string) (o OAuthClient, err error) {
	found := false
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		o, found, err = s.findClient(ctx, c, id)
		return err
	})
	if err == nil && (!found || s.over(o)) {
		return OAuthClient{}, noClient()
	}
	return o, err
}

func noClient() error {
	return fault.New(contract.NotFound, "no client has that id").WithHint("`dodo auth clients` lists those that are registered")
}

// OAuthClients are all clients, the oldest first.
func (s *Store) OAuthClients(ctx context.Context) (list []OAuthClient, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+clientColumns+" FROM clients ORDER BY created, id", nil, func(scan scanner) error {
			o, err := scanClient(scan)
			if err == nil && !s.over(o) {
				list = append(list, o)
			}
			return err
		})
	})
	return list, err
}

// AddOAuthClient registers a client: for the owner, or one that registers itself. Of the
// latter only so many may wait for the owner's first yes: RESOURCE_LIMIT.
func (s *Store) AddOAuthClient(ctx context.Context, o OAuthClient) (OAuthClient, error) {
	err := s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now := s.stamp()
		o.Created, o.Approved = timeOf(now), time.Time{}
		e := Event{Principal: PrincipalOwner, Tool: "owner.auth.add-client", Ref: o.ID, Result: ResultOK}
		if o.Kind == ClientDynamic {
			e.Principal, e.Tool = PrincipalDodo, "oauth.register"
			if err := waitingRoom(ctx, c, now); err != nil {
				return err
			}
		}
		if _, found, err := s.findClient(ctx, c, o.ID); err != nil {
			return err
		} else if found {
			return fault.New(contract.Conflict, "a client has that id already")
		}
		if err := putClient(ctx, c, o); err != nil {
			return err
		}
		return s.append(ctx, c, e)
	})
	return o, err
}

// waitingRoom removes what has had its time, and refuses another one while too many wait.
func waitingRoom(ctx context.Context, c *sqlitedb.Conn, now int64) error {
	if _, err := pruneClients(ctx, c, now); err != nil {
		return err
	}
	var wait int
	if _, err := c.Row(ctx, "SELECT count(*) FROM clients WHERE kind = 'dynamic' AND approved IS NULL AND created > ?",
		[]any{now - WaitingLife.Milliseconds()}, &wait); err != nil {
		return err
	}
	if wait >= MostWaiting {
		return fault.New(contract.ResourceLimit, "%d clients registered and wait for the owner already", wait).
			WithHint("try again in ten minutes, or let the owner register the client: dodo auth add-client").Retry()
	}
	return nil
}

func pruneClients(ctx context.Context, c *sqlitedb.Conn, now int64) (int64, error) {
	return exec(ctx, c, "DELETE FROM clients WHERE id IN (SELECT id FROM clients WHERE kind = 'dynamic' AND approved IS NULL AND created <= ? LIMIT ?)",
		now-waitingRow.Milliseconds(), pruneSlice)
}

// putClient writes a row, over the one that a metadata client may have already.
func putClient(ctx context.Context, c *sqlitedb.Conn, o OAuthClient) error {
	redirects, err := json.Marshal(o.Redirects)
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, `INSERT INTO clients VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
		name = excluded.name, redirects = excluded.redirects, refresh = excluded.refresh, application = excluded.application WHERE kind = 'metadata'`,
		o.ID, string(o.Kind), o.Name, string(redirects), o.AuthMethod, o.Secret, o.Refresh, o.Application, o.Created.UnixMilli(), orNull(o.Approved))
	return err
}

// DeleteOAuthClient removes a client and all that it was given: approvals of its calls are
// denied, its grants revoked, its codes and tokens removed, what workspaces grant it too.
// NOT_FOUND when there is none. What it began goes on.
func (s *Store) DeleteOAuthClient(ctx context.Context, id string) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, found, err := s.findClient(ctx, c, id); err != nil {
			return err
		} else if !found {
			return noClient()
		}
		var grants []string
		if err := c.Each(ctx, "SELECT id FROM grants WHERE client = ?", []any{id}, func(scan scanner) error {
			var g string
			err := scan(&g)
			grants = append(grants, g)
			return err
		}); err != nil {
			return err
		}
		for _, g := range grants {
			if err := s.endGrant(ctx, c, g, "its client was deleted"); err != nil {
				return err
			}
		}
		for _, query := range []string{"DELETE FROM workspace_clients WHERE client = ?", "DELETE FROM clients WHERE id = ?"} {
			if _, err := c.Exec(ctx, query, id); err != nil {
				return err
			}
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Tool: "owner.auth.delete-client", Ref: id, Result: ResultOK})
	})
}
