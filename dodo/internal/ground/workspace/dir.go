package workspace

import (
	"errors"
	"io/fs"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Dir is a directory of a workspace, open for changing one entry at a time. Only package
// change uses it: it holds the journal that makes a change whole.
type Dir struct {
	t    *Tree
	d    *safefile.Dir
	path Path
}

// Parent opens the directory an entry is in. With create the missing directories on the way
// are made, flushed and named, the outermost first; on an error those made so far are named
// too.
func (t *Tree) Parent(p Path, create bool) (*Dir, []Path, error) {
	if p.IsRoot() {
		return nil, nil, fault.New(contract.PathDenied, "the root of the workspace itself is not changed").
			WithHint("name an entry in it")
	}
	if err := t.Access(p); err != nil {
		return nil, nil, err
	}
	parent := p.Parent()
	d, err := t.openDir(parent)
	if err == nil {
		return &Dir{t, d, parent}, nil, nil
	}
	if !create || !errors.Is(err, contract.NotFound) {
		return nil, nil, err
	}
	if d, err = t.openDir(Path{}); err != nil {
		return nil, nil, err
	}
	dir := &Dir{t: t, d: d}
	var made []Path
	for name := range strings.SplitSeq(parent.rel, "/") {
		next, err := dir.d.Sub(name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = dir.Mkdir(name, 0o777); err == nil {
				made = append(made, dir.path.Join(name))
				err = dir.Sync()
			} else if errors.Is(err, fs.ErrExist) {
				err = nil // somebody else made it meanwhile
			}
			if err == nil {
				next, err = dir.d.Sub(name)
			}
		}
		dir.Close()
		if err != nil {
			return nil, made, t.lookup(p, err)
		}
		dir = &Dir{t, next, dir.path.Join(name)}
	}
	return dir, made, nil
}

// Close releases the descriptor.
func (d *Dir) Close() error { return d.d.Close() }

const (
	stagePrefix = ".dodo-"
	stageDigits = 16 // hexadecimal
)

// stageName reports whether a name has the form of a stage.
func stageName(name string) bool {
	if !strings.HasPrefix(name, stagePrefix) || len(name) < len(stagePrefix)+1+stageDigits {
		return false
	}
	tail := name[len(name)-stageDigits-1:]
	return tail[0] == '-' && strings.Trim(tail[1:], "0123456789abcdef") == ""
}

// Exchange swaps a stage with what has the name: afterwards the stage is the old content,
// which the caller verifies and keeps, or swaps back. A file system that cannot exchange gives
// NOT_SUPPORTED, and nothing has changed.
func (d *Dir) Exchange(stage, name string) error {
	if err := d.access(name); err != nil {
		return err
	}
	return d.fault(d.path.Join(name), d.d.Exchange(stage, d.d, name))
}

// Remove removes a file or a stage; a directory is refused.
func (d *Dir) Remove(name string) error {
	if err := d.access(name); err != nil {
		return err
	}
	return d.fault(d.path.Join(name), d.d.Remove(name))
}

// RemoveDir removes an empty directory.
func (d *Dir) RemoveDir(name string) error {
	if err := d.access(name); err != nil {
		return err
	}
	return d.fault(d.path.Join(name), d.d.RemoveDir(name))
}

// Mkdir makes a directory, with the permissions the umask leaves of mode. A name that is
// taken gives fs.ErrExist and CONFLICT.
func (d *Dir) Mkdir(name string, mode fs.FileMode) error {
	if err := d.creatable(name); err != nil {
		return err
	}
	return d.fault(d.path.Join(name), d.d.Mkdir(name, mode.Perm()))
}

// Sync flushes the directory's names.
func (d *Dir) Sync() error { return d.fault(d.path, d.d.Sync()) }

// Stat tells about an entry or a stage, a link too.
func (d *Dir) Stat(name string) (Info, error) {
	if err := d.access(name); err != nil {
		return Info{}, err
	}
	in, err := d.d.Stat(name)
	if err != nil {
		return Info{}, d.fault(d.path.Join(name), err)
	}
	return infoOf(in), nil
}

// Open opens a regular file with one name, or a stage.
func (d *Dir) Open(name string) (*File, error) {
	if err := d.access(name); err != nil {
		return nil, err
	}
	p := d.path.Join(name)
	f, in, err := d.d.Open(name)
	if err != nil {
		return nil, d.fault(p, err)
	}
	return d.t.admit(p, f, in)
}

// Sweep removes what stages of id are left in the directory.
func (d *Dir) Sweep(id string) error {
	list, err := d.d.Entries()
	if err != nil {
		return d.fault(d.path, err)
	}
	for _, e := range list {
		if stageName(e.Name) && e.Name[:len(e.Name)-stageDigits-1] == stagePrefix+id {
			if err := d.d.Remove(e.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return d.fault(d.path, err)
			}
		}
	}
	return nil
}

// access admits what callers may reach, and stages.
func (d *Dir) access(name string) error {
	if stageName(name) {
		return nil
	}
	return d.t.Access(d.path.Join(name))
}

// creatable admits the name of something new.
func (d *Dir) creatable(name string) error {
	p := d.path.Join(name)
	if err := d.t.Access(p); err != nil {
		return err
	}
	return plainName(p)
}

func (d *Dir) fault(p Path, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return fault.Wrap(contract.Conflict, err, "something is there by that name already").
			WithHint("read it first, or choose another name").With("path", p.Shown())
	}
	return d.t.lookup(p, err)
}
