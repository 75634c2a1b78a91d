package state

import (
	"context"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
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

// GrantLife is how long a grant holds.
const GrantLife = 30 * 24 * time.Hour

// The durable marker of a grant that is for the installation (contract 017).
const (
	markerPrefix = "identity-grant:"
	markerValue  = "2"
)

const grantColumns = "id, client, scopes, resource, created, expires, coalesce(revoked, 0), reason"

func scanGrant(scan scanner) (g Grant, err error) {
	var scopes string
	var created, expires, revoked int64
	err = scan(&g.ID, &g.Client, &scopes, &g.Resource, &created, &expires, &revoked, &g.Reason)
	g.Scopes, _ = contract.ParseScopes(strings.Fields(scopes))
	g.Created, g.Expires = timeOf(created), timeOf(expires)
	if revoked != 0 {
		g.Revoked = timeOf(revoked)
	}
	return g, err
}

// Grant is the live grant of an id. What is unknown, revoked or over, has no marker or no
// client any more gives AUTH_REQUIRED.
func (s *Store) Grant(ctx context.Context, id string) (g Grant, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		g, err = s.liveGrant(ctx, c, id)
		return err
	})
	return g, err
}

const liveQuery = "SELECT " + grantColumns + ` FROM grants WHERE id = ?1 AND revoked IS NULL AND expires > ?2
	AND EXISTS (SELECT 1 FROM clients WHERE clients.id = grants.client)
	AND EXISTS (SELECT 1 FROM meta WHERE key = ?3 AND value = ?4)`

func (s *Store) liveGrant(ctx context.Context, c *sqlitedb.Conn, id string) (g Grant, err error) {
	found := false
	err = c.Each(ctx, liveQuery, []any{id, s.stamp(), markerPrefix + id, markerValue}, func(scan scanner) error {
		found = true
		g, err = scanGrant(scan)
		return err
	})
	if err == nil && !found {
		return Grant{}, fault.New(contract.AuthRequired, "the login has ended, or the owner revoked it").WithHint("log in again in the client")
	}
	return g, err
}

// Grants are all grants, the newest first, with those that ended.
func (s *Store) Grants(ctx context.Context) (list []Grant, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+grantColumns+" FROM grants ORDER BY created DESC, id", nil, func(scan scanner) error {
			g, err := scanGrant(scan)
			list = append(list, g)
			return err
		})
	})
	return list, err
}

// RevokeGrant is the owner's end of a grant with all its tokens; NOT_FOUND when there is
// none. One that was revoked already is no fault.
func (s *Store) RevokeGrant(ctx context.Context, id string) (g Grant, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		found := false
		read := func() error {
			return c.Each(ctx, "SELECT "+grantColumns+" FROM grants WHERE id = ?", []any{id}, func(scan scanner) (err error) {
				found = true
				g, err = scanGrant(scan)
				return err
			})
		}
		if err := read(); err != nil {
			return err
		}
		if !found {
			return fault.New(contract.NotFound, "no grant has that id").WithHint("`dodo auth list` lists them")
		}
		if !g.Revoked.IsZero() {
			return nil
		}
		if err := s.endGrant(ctx, c, id, "the owner revoked it"); err != nil {
			return err
		}
		if err := s.append(ctx, c, Event{Principal: PrincipalOwner, Tool: "owner.auth.revoke", Ref: id, Result: ResultOK}); err != nil {
			return err
		}
		return read()
	})
	return g, err
}

// endGrant revokes a grant within a transaction, with what hangs on it: its codes and refresh
// tokens go, approvals of its calls are denied.
func (s *Store) endGrant(ctx context.Context, c *sqlitedb.Conn, id, reason string) error {
	now := s.stamp()
	if _, err := c.Exec(ctx, "UPDATE grants SET revoked = ?, reason = ? WHERE id = ? AND revoked IS NULL", now, reason, id); err != nil {
		return err
	}
	for _, query := range []string{`DELETE FROM codes WHERE "grant" = ?`, `DELETE FROM refresh_tokens WHERE "grant" = ?`} {
		if _, err := c.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, "UPDATE approvals SET status = 'denied', decided = ? WHERE principal = ? AND status IN ('pending', 'approved')", now, id)
	return err
}

// A Code is what a browser carries to a client that the owner said yes to.
type Code struct {
	Hash      string // SHA-256 of the code
	Redirect  string // where it is carried to
	Challenge string // S256 of what the client must show
	Scope     string // all that was granted, with spaces between
	Nonce     string
	Expires   time.Time
}

// A Login is what the owner said yes to.
type Login struct {
	Client   OAuthClient // as the owner was shown it
	Scopes   contract.Scopes
	Resource string
	Code     Code
}

// AddGrant grants a client what the owner said yes to, and keeps the code that it gets for
// it. A client that was deleted since the owner was shown it gives NOT_FOUND.
func (s *Store) AddGrant(ctx context.Context, l Login) (g Grant, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now := s.stamp()
		if err := s.approveClient(ctx, c, l.Client, now); err != nil {
			return err
		}
		g = Grant{
			ID: contract.NewID(contract.PrefixGrant, 20), Client: l.Client.ID, Scopes: l.Scopes, Resource: l.Resource,
			Created: timeOf(now), Expires: timeOf(now + GrantLife.Milliseconds()),
		}
		if _, err := c.Exec(ctx, "INSERT INTO grants VALUES (?, ?, ?, ?, ?, ?, NULL, '')",
			g.ID, g.Client, strings.Join(g.Scopes.Words(), " "), g.Resource, now, g.Expires.UnixMilli()); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "INSERT INTO meta VALUES (?, ?)", markerPrefix+g.ID, markerValue); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "INSERT INTO codes VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
			l.Code.Hash, g.ID, l.Code.Redirect, l.Code.Challenge, l.Code.Scope, l.Code.Nonce, now, l.Code.Expires.UnixMilli()); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: g.ID, Tool: "oauth.login", Ref: g.Client, Result: ResultOK})
	})
	return g, err
}

// approveClient notes the owner's first yes. Only a metadata client that had no row when the
// owner was shown it gets one here.
func (s *Store) approveClient(ctx context.Context, c *sqlitedb.Conn, shown OAuthClient, now int64) error {
	row, found, err := s.findClient(ctx, c, shown.ID)
	switch {
	case err != nil:
		return err
	case !found && (shown.Kind != ClientMetadata || !shown.Created.IsZero()), found && row.Kind != shown.Kind:
		return noClient()
	case shown.Kind == ClientMetadata:
		shown.Created, shown.Approved = timeOf(now), timeOf(now)
		return putClient(ctx, c, shown)
	}
	_, err = c.Exec(ctx, "UPDATE clients SET approved = ? WHERE id = ? AND approved IS NULL", now, shown.ID)
	return err
}
