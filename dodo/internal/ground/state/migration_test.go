package state_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/sqlitedb"
)

// TestJobsAreAdded: a database of the first version gets the table of jobs, and keeps what it
// has.
func TestJobsAreAdded(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "dodo")
	must(t, os.Mkdir(dir, 0o700))
	old, err := sqlitedb.Open(ctx, filepath.Join(dir, state.FileName), sqlitedb.Options{ApplicationID: 0x646f646f, Migrations: state.Migrations[:1], Durable: true})
	must(t, err)
	must(t, old.Write(ctx, func(c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO meta VALUES ('kept', 'yes')")
		return err
	}))
	must(t, old.Close())
	s, err := state.Open(ctx, dir, state.Options{})
	must(t, err)
	defer s.Close()
	var kept string
	jobs := -1
	must(t, s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, err := c.Row(ctx, "SELECT value FROM meta WHERE key = 'kept'", nil, &kept); err != nil {
			return err
		}
		_, err := c.Row(ctx, "SELECT count(*) FROM jobs", nil, &jobs)
		return err
	}))
	if kept != "yes" || jobs != 0 {
		t.Errorf("%q, %d", kept, jobs)
	}
}

// TestOAuthIsAdded: a database from before logins gets their tables, keeps what workspaces
// grant clients, and nobody is let in by it.
func TestOAuthIsAdded(t *testing.T) {
	ctx := context.Background()
	dir := place(t)
	old, err := sqlitedb.Open(ctx, filepath.Join(dir, state.FileName), sqlitedb.Options{ApplicationID: 0x646f646f, Migrations: state.Migrations[:3], Durable: true})
	must(t, err)
	must(t, old.Write(ctx, func(c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO workspaces VALUES ('ws_1', '/w', 1, 2, 'edit', 0, 'boot_1', 0)")
		if err == nil {
			_, err = c.Exec(ctx, `INSERT INTO workspace_clients VALUES ('ws_1', 'cl', '["dodo:read"]')`)
		}
		return err
	}))
	must(t, old.Close())
	s := open(t, dir, nil)
	a, err := s.Authority(ctx, "ws_1", "cl")
	must(t, err)
	clients, err := s.OAuthClients(ctx)
	must(t, err)
	grants, err := s.Grants(ctx)
	must(t, err)
	if len(a.ClientScopes) != 1 || len(clients) != 0 || len(grants) != 0 {
		t.Errorf("%+v %v %v", a, clients, grants)
	}
}
