package state

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// A Workspace is a root that was opened in this installation.
type Workspace struct {
	ID        string
	Root      string // absolute
	Dev, Ino  uint64 // of the directory it was when it was last opened
	Trust     contract.Trust
	Created   time.Time
	LastEpoch string
	LastSeen  time.Time
}

const workspaceColumns = "id, root, dev, ino, trust, created, last_epoch, last_seen"

func scanWorkspace(scan scanner) (w Workspace, err error) {
	var dev, ino, created, seen int64
	var trust string
	err = scan(&w.ID, &w.Root, &dev, &ino, &trust, &created, &w.LastEpoch, &seen)
	w.Dev, w.Ino = uint64(dev), uint64(ino)
	w.Trust, _ = contract.ParseTrust(trust)
	w.Created, w.LastSeen = timeOf(created), timeOf(seen)
	return w, err
}

// OpenWorkspace notes that a process opened a root with an epoch of its own. replaced says
// that the directory is not the one it was: its trust was set back to inspect and what
// clients were granted there is gone (contract 017).
func (s *Store) OpenWorkspace(ctx context.Context, root string, dev, ino uint64, epoch string) (w Workspace, replaced bool, err error) {
	id, now := s.WorkspaceID(root), s.stamp()
	// It need not wait for the disk: if a power cut takes it, what was granted to a directory
	// that is gone comes back with that directory's identity, and the next start notices again.
	err = s.write(ctx, s.quick, func(ctx context.Context, c *sqlitedb.Conn) error {
		old, found, err := findWorkspace(ctx, c, id)
		if err != nil {
			return err
		}
		replaced = found && (old.Dev != dev || old.Ino != ino)
		if _, err := c.Exec(ctx, `INSERT INTO workspaces (id, root, dev, ino, trust, created, last_epoch, last_seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET dev = excluded.dev, ino = excluded.ino, last_epoch = excluded.last_epoch, last_seen = excluded.last_seen`,
			id, root, int64(dev), int64(ino), string(contract.TrustInspect), now, epoch, now); err != nil {
			return err
		}
		if replaced {
			if err := s.forgetAuthority(ctx, c, id); err != nil {
				return err
			}
		}
		w, _, err = findWorkspace(ctx, c, id)
		return err
	})
	return w, replaced, err
}

// forgetAuthority takes back what was granted to a directory that is no longer there.
func (s *Store) forgetAuthority(ctx context.Context, c *sqlitedb.Conn, id string) error {
	if _, err := c.Exec(ctx, "DELETE FROM workspace_clients WHERE workspace = ?", id); err != nil {
		return err
	}
	if err := s.setTrust(ctx, c, id, contract.TrustInspect, "replaced"); err != nil {
		return err
	}
	return s.append(ctx, c, Event{Principal: PrincipalDodo, Workspace: id, Tool: "workspace.replaced", Result: ResultOK})
}

func findWorkspace(ctx context.Context, c *sqlitedb.Conn, id string) (w Workspace, found bool, err error) {
	err = c.Each(ctx, "SELECT "+workspaceColumns+" FROM workspaces WHERE id = ?", []any{id}, func(scan scanner) error {
		found = true
		w, err = scanWorkspace(scan)
		return err
	})
	return w, found, err
}

// Workspace is the workspace of an id; NOT_FOUND when none was opened.
func (s *Store) Workspace(ctx context.Context, id string) (w Workspace, err error) {
	found := false
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		w, found, err = findWorkspace(ctx, c, id)
		return err
	})
	if err == nil && !found {
		err = noWorkspace()
	}
	return w, err
}

func noWorkspace() error {
	return fault.New(contract.NotFound, "no workspace of this installation has that root or id").
		WithHint("open it once, with `dodo stdio --root DIRECTORY` or in a client")
}
