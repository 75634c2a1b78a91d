package state

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

// A Directory is one that a project was registered with. Born tells it from a later one
// that was given the same number.
type Directory struct {
	Dev, Ino uint64
	Born     int64 // nanoseconds since 1970
}

// A Project is a root that the owner registered.
type Project struct {
	ID        string
	Workspace string // id of the workspace at its root
	Root      string // absolute
	Name      string // as people see it
	Directory
	Created, Updated time.Time
	Removed          *time.Time // when the owner removed it; nil while it is registered
}

const projectColumns = "id, workspace, root, name, dev, ino, born, created, updated, removed"

func scanProject(scan scanner) (p Project, err error) {
	var dev, ino, created, updated int64
	var removed *int64
	err = scan(&p.ID, &p.Workspace, &p.Root, &p.Name, &dev, &ino, &p.Born, &created, &updated, &removed)
	p.Dev, p.Ino, p.Created, p.Updated = uint64(dev), uint64(ino), timeOf(created), timeOf(updated)
	if removed != nil {
		t := timeOf(*removed)
		p.Removed = &t
	}
	return p, err
}

// Locate looks at a directory that is to be registered, by its absolute path without links.
// The faults are NOT_FOUND, PATH_DENIED for what is no directory or has a link in its path,
// and NOT_SUPPORTED where the file system keeps no time of birth.
func Locate(root string) (Directory, error) {
	r, err := safefile.OpenRoot(root, safefile.RefuseLinks)
	if err != nil {
		var link *safefile.LinkError
		switch {
		case errors.Is(err, safefile.NotSupported):
			return Directory{}, Fault(err)
		case errors.Is(err, fs.ErrNotExist):
			return Directory{}, fault.Wrap(contract.NotFound, err, "the directory does not exist").WithHint("make it, or correct the path")
		case errors.As(err, &link):
			return Directory{}, fault.Wrap(contract.PathDenied, err, "the path has a symbolic link").WithHint("give the real path")
		case errors.Is(err, safefile.ErrNotDirectory):
			return Directory{}, fault.Wrap(contract.PathDenied, err, "the path is not that of a directory").WithHint("give a directory")
		}
		return Directory{}, fault.Wrap(contract.PathDenied, err, "the directory cannot be opened").WithHint("look at its permissions and at those of the directories above it")
	}
	defer r.Close()
	st, err := r.Stat(".")
	if err != nil {
		return Directory{}, fault.Wrap(contract.PathDenied, err, "the directory cannot be looked at").WithHint("give the user read and search permission on it")
	}
	born, known, err := r.Born()
	if err == nil && !known {
		err = fault.New(contract.NotSupported, "the file system of the directory keeps no time of birth, so a directory put in its place could not be told from it").
			WithHint("serve it without registering it, or move it to another file system")
	}
	return Directory{Dev: st.Dev, Ino: st.Ino, Born: born}, err
}

// AddProject registers a root. The same directory at a new path keeps its project's id, but
// belongs to another workspace, for authority does not travel. Another directory at a
// registered path is a new project, and the old one counts as removed. name may be empty
// where the project has one.
func (s *Store) AddProject(ctx context.Context, root, name string, d Directory) (p Project, err error) {
	now := s.stamp()
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		at := []any{root, int64(d.Dev), int64(d.Ino), d.Born}
		if _, err := c.Exec(ctx, "UPDATE projects SET removed = ?5, updated = ?5 WHERE removed IS NULL AND root = ?1 AND NOT (dev = ?2 AND ino = ?3 AND born = ?4)",
			append(at, now)...); err != nil {
			return err
		}
		known := false
		if err := c.Each(ctx, "SELECT "+projectColumns+" FROM projects WHERE removed IS NULL AND dev = ? AND ino = ? AND born = ?", at[1:], func(scan scanner) error {
			known = true
			p, err = scanProject(scan)
			return err
		}); err != nil {
			return err
		}
		if !known {
			p = Project{ID: contract.NewID(contract.PrefixProject, 16), Created: timeOf(now)}
		}
		if name != "" {
			p.Name = name
		}
		p.Workspace, p.Root, p.Directory, p.Updated = s.WorkspaceID(root), root, d, timeOf(now)
		if _, err := c.Exec(ctx, `INSERT INTO projects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)
			ON CONFLICT (id) DO UPDATE SET workspace = excluded.workspace, root = excluded.root, name = excluded.name, updated = excluded.updated`,
			p.ID, p.Workspace, p.Root, p.Name, int64(d.Dev), int64(d.Ino), d.Born, p.Created.UnixMilli(), now); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: p.Workspace, Tool: "owner.project.add", Ref: p.ID, Result: ResultOK})
	})
	return p, err
}

// RemoveProject ends a registration. The row stays, so that its id is never another's.
func (s *Store) RemoveProject(ctx context.Context, id string) (p Project, err error) {
	now := s.stamp()
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		if p, err = project(ctx, c, id); err != nil {
			return err
		}
		if p.Removed != nil {
			return fault.New(contract.Conflict, "the project was removed before").WithHint("list all with `dodo project list --all`")
		}
		if _, err := c.Exec(ctx, "UPDATE projects SET removed = ?, updated = ? WHERE id = ?", now, now, id); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: p.Workspace, Tool: "owner.project.remove", Ref: id, Result: ResultOK})
	})
	return p, err
}

// Project is the one of an id, also a removed one; NOT_FOUND when there never was one.
func (s *Store) Project(ctx context.Context, id string) (p Project, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		p, err = project(ctx, c, id)
		return err
	})
	return p, err
}

func project(ctx context.Context, c *sqlitedb.Conn, id string) (p Project, err error) {
	found := false
	err = c.Each(ctx, "SELECT "+projectColumns+" FROM projects WHERE id = ?", []any{id}, func(scan scanner) error {
		found = true
		p, err = scanProject(scan)
		return err
	})
	if err == nil && !found {
		err = fault.New(contract.NotFound, "no project has that id").WithHint("`dodo project list` shows the projects")
	}
	return p, err
}

// Projects are the registered ones by root; with removed, also those that were removed.
func (s *Store) Projects(ctx context.Context, removed bool) (list []Project, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+projectColumns+" FROM projects WHERE ? OR removed IS NULL ORDER BY root, created, id", []any{removed}, func(scan scanner) error {
			p, err := scanProject(scan)
			list = append(list, p)
			return err
		})
	})
	return list, err
}

// Readiness is whether a project can be used now.
type Readiness string

// The states of readiness.
const (
	Ready        Readiness = "ready"
	Missing      Readiness = "missing"      // nothing is at its root
	Symlinked    Readiness = "symlinked"    // its path has a link now
	Replaced     Readiness = "replaced"     // another directory is at its root
	Inaccessible Readiness = "inaccessible" // it cannot be opened
	Invalid      Readiness = "invalid"      // something else than a directory is there
	Gone         Readiness = "removed"      // the owner removed it
)

// Readiness looks at the root as it is now.
func (p Project) Readiness() Readiness {
	if p.Removed != nil {
		return Gone
	}
	d, err := Locate(p.Root)
	var link *safefile.LinkError
	switch {
	case err == nil && d == p.Directory:
		return Ready
	case err == nil:
		return Replaced
	case errors.Is(err, fs.ErrNotExist):
		return Missing
	case errors.As(err, &link):
		return Symlinked
	case errors.Is(err, safefile.ErrNotDirectory):
		return Invalid
	}
	return Inaccessible
}
