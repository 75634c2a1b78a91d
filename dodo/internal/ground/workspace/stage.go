package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// StageName is the name of the nth stage of a change. It says before anything is written
// where bytes will wait, so that a journal can.
func StageName(id string, n int) string {
	return fmt.Sprintf("%s%s-%0*x", stagePrefix, id, stageDigits, n)
}

// unfinished marks the name that a stage has while it is written: what stands under its own
// name is whole.
const unfinished = "f"

// WriteStage writes data under a [StageName] and flushes it. It gets the mode, the owner and
// the attributes of model, or without one exactly the permission bits of mode. A stage that is
// there has the bytes already or is in the way: fs.ErrExist.
func (d *Dir) WriteStage(stage string, data []byte, mode fs.FileMode, model *File) error {
	part := stage[:len(stage)-stageDigits] + unfinished + stage[len(stage)-stageDigits+1:]
	err := d.d.Remove(part) // of one who died
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		if model != nil {
			err = d.d.CreateLike(part, data, model.File)
		} else {
			err = d.d.Create(part, data, mode.Perm())
		}
	}
	if err == nil {
		if err = d.d.Move(part, d.d, stage); errors.Is(err, errors.ErrUnsupported) {
			if err = d.d.Link(part, d.d, stage); err == nil {
				err = d.d.Remove(part)
			}
		}
	}
	return d.stageFault(err, model)
}

func (d *Dir) stageFault(err error, model *File) error {
	if err != nil && model != nil && errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(contract.PathDenied, err, "the system does not let this user make a file with the owner and the attributes of the one that is there").
			WithHint("the owner of the machine can change who the file belongs to").With("path", d.path.String())
	}
	return d.fault(d.path, err)
}

// Draft writes what becomes a stage, and flushes it, before it has a name: dropped it leaves
// nothing. mode and model are as for [Dir.WriteStage]. A file system that has no files without
// a name gives errors.ErrUnsupported.
func (d *Dir) Draft(data []byte, mode fs.FileMode, model *File) (*os.File, error) {
	var like *os.File
	if model != nil {
		like = model.File
	}
	f, err := d.d.CreateUnnamed(data, mode.Perm(), like)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	return f, d.stageFault(err, model)
}

// NameStage makes a draft a stage. errors.ErrUnsupported says that it cannot get a name here.
func (d *Dir) NameStage(draft *os.File, stage string) error {
	err := d.d.Name(draft, stage)
	if errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return d.fault(d.path, err)
}

// Withdraw gives a file the name of a stage: callers see it no more, and it can be looked at.
func (d *Dir) Withdraw(name, stage string) error {
	if err := d.access(name); err != nil {
		return err
	}
	return d.fault(d.path.Join(name), d.d.Move(name, d.d, stage))
}

// Restore gives a stage a name that nothing may have: else the error is fs.ErrExist and
// CONFLICT. Names that something had before are taken, too; for a new one ask
// [Tree.Creatable] first.
func (d *Dir) Restore(stage, name string) error {
	if err := d.access(name); err != nil {
		return err
	}
	err := d.d.Move(stage, d.d, name)
	if errors.Is(err, errors.ErrUnsupported) {
		if err = d.d.Link(stage, d.d, name); err == nil {
			err = d.d.Remove(stage)
		}
	}
	return d.fault(d.path.Join(name), err)
}

// Rename gives a regular file another name, which nothing may have: else the error is
// fs.ErrExist and CONFLICT. Directories are not moved: what is secret by its path would not be
// so any more. Names that something had before are taken, too, as by [Dir.Restore].
func (d *Dir) Rename(name string, dst *Dir, dstName string) error {
	if err := d.access(name); err != nil {
		return err
	}
	in, err := d.d.Stat(name)
	if err != nil {
		return d.fault(d.path.Join(name), err)
	}
	if err := d.t.regular(d.path.Join(name), in); err != nil {
		return err
	}
	return d.Return(name, dst, dstName)
}

// Return is [Dir.Rename] for whatever has the name: it takes back a Rename that met what
// somebody had put there in the last instant.
func (d *Dir) Return(name string, dst *Dir, dstName string) error {
	if err := d.access(name); err != nil {
		return err
	}
	if err := dst.access(dstName); err != nil {
		return err
	}
	return d.fault(dst.path.Join(dstName), d.d.Move(name, dst.d, dstName))
}

// Creatable says by a path's name alone whether something new may get it.
func (t *Tree) Creatable(p Path) error {
	if p.IsRoot() {
		return fault.New(contract.PathDenied, "the root of the workspace itself is not changed").
			WithHint("name an entry in it")
	}
	if err := t.Access(p); err != nil {
		return err
	}
	return plainName(p)
}

// Lease, Undisturbed and EndLease are those of package safefile.
func (f *File) Lease() (held, writers bool) { return safefile.Lease(f.File) }

// Undisturbed reports whether nobody waits for the end of the lease.
func (f *File) Undisturbed() bool { return safefile.Undisturbed(f.File) }

// EndLease lets go on who was held back.
func (f *File) EndLease() { safefile.EndLease(f.File) }
