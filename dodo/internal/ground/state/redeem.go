package state

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// Bounds of refresh tokens.
const (
	// RefreshLife is how long a refresh token may be used.
	RefreshLife = 30 * 24 * time.Hour
	// RefreshGrace is how long after its first use one may be used again: clients refresh from
	// several places at once, and answers get lost.
	RefreshGrace = 30 * time.Second
	// mostCopies is how many tokens one generation has at most.
	mostCopies = 16
	// mostGenerations is how many generations of a family are remembered: more than a client
	// makes that refreshes whenever a token has ended. Older tokens are refused as unknown.
	mostGenerations = 5000
)

// A CodeUse is a client that shows a code.
type CodeUse struct {
	Hash      string // SHA-256 of the code
	Client    string // who shows it
	Resource  string // what its tokens would be for
	Redirect  string // where the client says that it was sent; empty when it says nothing
	Challenge string // S256 of what it showed
	Refresh   string // SHA-256 of the refresh token it will get; empty for none
}

// Redeemed is what a code or a refresh token is worth.
type Redeemed struct {
	Grant Grant
	Scope string // all that was granted, with spaces between
	Nonce string
}

// UseCode takes a code for what it is worth. The first use is the only one, whatever comes of
// it; a second one revokes the grant, for then somebody else had the code. AUTH_REQUIRED for
// all that is not good.
func (s *Store) UseCode(ctx context.Context, u CodeUse) (r Redeemed, err error) {
	var refusal error // what is returned although the transaction holds
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now := s.stamp()
		var grant, redirect, challenge string
		var expires, used int64
		found, err := c.Row(ctx, `SELECT "grant", redirect, challenge, scope, nonce, expires, coalesce(used, 0) FROM codes WHERE hash = ?`,
			[]any{u.Hash}, &grant, &redirect, &challenge, &r.Scope, &r.Nonce, &expires, &used)
		if err != nil {
			return err
		}
		if !found {
			return notGood("the code is not known")
		}
		if used != 0 {
			refusal = notGood("the code was used before, so the login that it belongs to was ended")
			return s.misused(ctx, c, grant, "oauth.code-reuse", "its code was used twice")
		}
		if _, err := c.Exec(ctx, "UPDATE codes SET used = ? WHERE hash = ?", now, u.Hash); err != nil {
			return err
		}
		g, err := s.liveGrant(ctx, c, grant)
		switch {
		case err != nil:
			refusal = err
			return nil
		case expires <= now:
			refusal = notGood("the code has ended")
			return nil
		case g.Client != u.Client:
			refusal = notGood("the code is that of another client")
			return nil
		case g.Resource != u.Resource:
			refusal = otherResource()
			return nil
		case u.Redirect != "" && u.Redirect != redirect:
			refusal = notGood("redirect_uri is not the one that the code was sent to")
			return nil
		case subtle.ConstantTimeCompare([]byte(u.Challenge), []byte(challenge)) != 1:
			refusal = notGood("code_verifier does not fit the code_challenge")
			return nil
		}
		r.Grant = g
		if u.Refresh == "" {
			return nil
		}
		return putRefresh(ctx, c, u.Refresh, g, contract.NewID("fam", 16), 0, r.Scope, now)
	})
	if err == nil {
		err = refusal
	}
	return r, err
}

func notGood(format string, args ...any) error {
	return fault.New(contract.AuthRequired, format, args...).WithHint("log in again in the client")
}

func otherResource() error { return notGood("the login is for another address of this server") }

// misused ends a grant whose code or token somebody else has, too.
func (s *Store) misused(ctx context.Context, c *sqlitedb.Conn, grant, act, reason string) error {
	if err := s.endGrant(ctx, c, grant, reason); err != nil {
		return err
	}
	return s.append(ctx, c, Event{Principal: PrincipalDodo, Tool: act, Ref: grant, Result: ResultOK})
}

func putRefresh(ctx context.Context, c *sqlitedb.Conn, hash string, g Grant, family string, generation int, scope string, now int64) error {
	_, err := c.Exec(ctx, "INSERT INTO refresh_tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
		hash, g.ID, family, generation, scope, now, min(now+RefreshLife.Milliseconds(), g.Expires.UnixMilli()))
	return err
}

// A RefreshUse is a client that shows a refresh token.
type RefreshUse struct {
	Hash     string   // SHA-256 of the token
	Client   string   // who shows it
	Resource string   // what its tokens would be for
	Next     string   // SHA-256 of the token it will get for it
	Scope    []string // what it wants of what was granted; none: all of it
}

// UseRefresh takes a refresh token for what it is worth, and keeps the one that takes its
// place, which is worth the same. Within the grace a used one may be used again. After it a
// use says that somebody else has the token, or a copy of it, and revokes the grant.
// AUTH_REQUIRED for all that is not good, FORBIDDEN for a scope that was not granted.
func (s *Store) UseRefresh(ctx context.Context, u RefreshUse) (r Redeemed, err error) {
	var refusal error // what is returned although the transaction holds
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now := s.stamp()
		var grant, family string
		var generation int
		var expires int64
		found, err := c.Row(ctx, `SELECT "grant", family, generation, scope, expires FROM refresh_tokens WHERE hash = ?`,
			[]any{u.Hash}, &grant, &family, &generation, &r.Scope, &expires)
		if err != nil {
			return err
		}
		if !found || expires <= now {
			return notGood("the refresh token is not known or has ended")
		}
		if r.Grant, err = s.liveGrant(ctx, c, grant); err != nil {
			return err
		}
		if r.Grant.Client != u.Client {
			return notGood("the refresh token is that of another client")
		}
		if r.Grant.Resource != u.Resource {
			return otherResource()
		}
		var first, copies int64
		if _, err := c.Row(ctx, `SELECT
			coalesce((SELECT min(used) FROM refresh_tokens WHERE family = ?1 AND generation = ?2), 0),
			(SELECT count(*) FROM refresh_tokens WHERE family = ?1 AND generation = ?2 + 1)`, []any{family, generation}, &first, &copies); err != nil {
			return err
		}
		if first != 0 && now > first+RefreshGrace.Milliseconds() {
			refusal = notGood("the refresh token was used before, so the login that it belongs to was ended")
			return s.misused(ctx, c, grant, "oauth.refresh-reuse", "its refresh token was used again")
		}
		granted := strings.Fields(r.Scope)
		for _, x := range u.Scope {
			if !slices.Contains(granted, x) {
				return fault.New(contract.Forbidden, "scope names more than was granted").WithHint("leave scope out, or log in again for more")
			}
		}
		if copies >= mostCopies {
			return fault.New(contract.ResourceLimit, "the refresh token was used %d times at once", copies).WithHint("use the one that took its place").Retry()
		}
		if _, err := c.Exec(ctx, "UPDATE refresh_tokens SET used = ? WHERE hash = ? AND used IS NULL", now, u.Hash); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "DELETE FROM refresh_tokens WHERE family = ? AND generation <= ?", family, generation+1-mostGenerations); err != nil {
			return err
		}
		return putRefresh(ctx, c, u.Next, r.Grant, family, generation+1, r.Scope, now)
	})
	if err == nil {
		err = refusal
	}
	return r, err
}

// RevokeRefresh ends the grant that a refresh token belongs to, when it is the client's. What
// is not known is no fault.
func (s *Store) RevokeRefresh(ctx context.Context, hash, client string) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var grant string
		found, err := c.Row(ctx, `SELECT "grant" FROM refresh_tokens WHERE hash = ?`, []any{hash}, &grant)
		if err != nil || !found {
			return err
		}
		return s.endedByClient(ctx, c, grant, client)
	})
}

// RevokeByClient ends a grant for the client that has it. Another's is left, and no fault.
func (s *Store) RevokeByClient(ctx context.Context, grant, client string) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error { return s.endedByClient(ctx, c, grant, client) })
}

func (s *Store) endedByClient(ctx context.Context, c *sqlitedb.Conn, grant, client string) error {
	var one int
	found, err := c.Row(ctx, "SELECT 1 FROM grants WHERE id = ? AND client = ? AND revoked IS NULL", []any{grant, client}, &one)
	if err != nil || !found {
		return err
	}
	if err := s.endGrant(ctx, c, grant, "its client logged out"); err != nil {
		return err
	}
	return s.append(ctx, c, Event{Principal: grant, Tool: "oauth.logout", Ref: client, Result: ResultOK})
}

// codeRow is how long the row of a code stays: a second use must still be known for one.
const codeRow = 24 * time.Hour

// pruneLogins removes codes and refresh tokens that are over, and grants, with their markers,
// that ended before a time.
func pruneLogins(ctx context.Context, c *sqlitedb.Conn, now, before int64) (int64, error) {
	var all int64
	for _, q := range []struct {
		query string
		time  int64
	}{
		{"DELETE FROM codes WHERE hash IN (SELECT hash FROM codes WHERE expires < ? LIMIT ?)", now - codeRow.Milliseconds()},
		{"DELETE FROM refresh_tokens WHERE hash IN (SELECT hash FROM refresh_tokens WHERE expires < ? LIMIT ?)", now},
		{"DELETE FROM meta WHERE key IN (SELECT '" + markerPrefix + "' || id FROM grants WHERE coalesce(revoked, expires) < ? ORDER BY id LIMIT ?)", before},
		{"DELETE FROM grants WHERE id IN (SELECT id FROM grants WHERE coalesce(revoked, expires) < ? ORDER BY id LIMIT ?)", before},
	} {
		n, err := exec(ctx, c, q.query, q.time, pruneSlice)
		if err != nil {
			return 0, err
		}
		all = max(all, n)
	}
	return all, nil
}
