package state

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/sqlitedb"
)

// Authority is what the owner's rules say of a workspace and a client now.
type Authority struct {
	Trust         contract.Trust      // as saved; inspect for a workspace nobody opened
	PolicyVersion int                 // how often it was changed
	AccessMode    contract.AccessMode // managed when nobody said
	ClientScopes  contract.Scopes     // what the workspace grants the client in managed mode
}

// Authority reads it in one state of the database: ask for each call, and again after
// waiting.
func (s *Store) Authority(ctx context.Context, workspace, client string) (a Authority, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var trust, mode, scopes string
		if _, err := c.Row(ctx, `SELECT
			coalesce((SELECT trust FROM workspaces WHERE id = ?1), ''),
			(SELECT count(*) FROM policy_versions WHERE workspace = ?1),
			coalesce((SELECT value FROM meta WHERE key = ?2), ''),
			coalesce((SELECT scopes FROM workspace_clients WHERE workspace = ?1 AND client = ?3), '')`,
			[]any{workspace, metaAccess, client}, &trust, &a.PolicyVersion, &mode, &scopes); err != nil {
			return err
		}
		a.Trust, _ = contract.ParseTrust(trust)
		a.AccessMode, _ = contract.ParseAccessMode(mode)
		a.ClientScopes = contract.DecodeScopes(scopes)
		return nil
	})
	return a, err
}

// SetTrust is the owner's word on a workspace. Each change makes a new version of the
// policy, so that approvals given before it no longer fit; the mode it has is no change.
func (s *Store) SetTrust(ctx context.Context, workspace string, t contract.Trust) (before contract.Trust, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		w, found, err := findWorkspace(ctx, c, workspace)
		switch {
		case err != nil:
			return err
		case !found:
			return noWorkspace()
		case w.Trust == t:
			before = t
			return nil
		}
		before = w.Trust
		if err := s.setTrust(ctx, c, workspace, t, "owner"); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: workspace, Tool: "owner.trust", Ref: string(t), Result: ResultOK})
	})
	return before, err
}

func (s *Store) setTrust(ctx context.Context, c *sqlitedb.Conn, workspace string, t contract.Trust, reason string) error {
	if _, err := c.Exec(ctx, "UPDATE workspaces SET trust = ? WHERE id = ?", string(t), workspace); err != nil {
		return err
	}
	_, err := c.Exec(ctx, "INSERT INTO policy_versions (workspace, trust, reason, changed) VALUES (?, ?, ?, ?)",
		workspace, string(t), reason, s.stamp())
	return err
}

// SetAccessMode mirrors the mode of the configuration, so that every running process sees a
// change at its next call.
func (s *Store) SetAccessMode(ctx context.Context, m contract.AccessMode) error {
	var now string
	if err := s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Row(ctx, "SELECT value FROM meta WHERE key = ?", []any{metaAccess}, &now)
		return err
	}); err != nil || now == string(m) {
		return err
	}
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, err := c.Exec(ctx, "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", metaAccess, string(m)); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Tool: "owner.access-mode", Ref: string(m), Result: ResultOK})
	})
}

// A ClientGrant is what a workspace grants a client in managed mode.
type ClientGrant struct {
	Client string
	Scopes contract.Scopes // none when the row names something unknown
}

// Clients are the grants of a workspace, by client.
func (s *Store) Clients(ctx context.Context, workspace string) (list []ClientGrant, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT client, scopes FROM workspace_clients WHERE workspace = ? ORDER BY client", []any{workspace}, func(scan scanner) error {
			var g ClientGrant
			var stored string
			err := scan(&g.Client, &stored)
			g.Scopes = contract.DecodeScopes(stored)
			list = append(list, g)
			return err
		})
	})
	return list, err
}

// GrantClient sets what a workspace grants a client.
func (s *Store) GrantClient(ctx context.Context, workspace, client string, scopes contract.Scopes) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, found, err := findWorkspace(ctx, c, workspace); err != nil {
			return err
		} else if !found {
			return noWorkspace()
		}
		if _, err := c.Exec(ctx, "INSERT INTO workspace_clients VALUES (?, ?, ?) ON CONFLICT (workspace, client) DO UPDATE SET scopes = excluded.scopes",
			workspace, client, scopes.Encode()); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: workspace, Tool: "owner.access.set", Ref: client, Result: ResultOK})
	})
}

// RevokeClient removes a grant and says whether there was one. The client's registration
// and its other workspaces stay.
func (s *Store) RevokeClient(ctx context.Context, workspace, client string) (was bool, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		n, err := exec(ctx, c, "DELETE FROM workspace_clients WHERE workspace = ? AND client = ?", workspace, client)
		if was = n > 0; err != nil || !was {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: workspace, Tool: "owner.access.remove", Ref: client, Result: ResultOK})
	})
	return was, err
}
