package git

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// lockName is the file whose being there keeps every git from writing the index.
const lockName = "index.lock"

// lockWords are what our lock holds, for whoever wonders, and for us to know it again.
const lockWords = "dodo is making a commit\n"

// lock takes the repository's index. A lock of ours whose process died is taken over: the
// system has let go of what that process held of it.
func (d *gitDir) lock() (unlock func(), err error) {
	for range 2 {
		unlock, err = d.tryLock()
		if !errors.Is(err, fs.ErrExist) || !d.abandoned() {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, fault.Wrap(contract.Conflict, err, "another git has the index of this repository").
			WithHint("try again in a moment; if no git is running, the owner can remove index.lock in the git directory").Retry()
	}
	if err != nil {
		return nil, writeFault(err)
	}
	return unlock, nil
}

// tryLock makes the lock's file under the system's own lock before it has a name, so that
// nobody takes it for one that was abandoned.
func (d *gitDir) tryLock() (func(), error) {
	f, err := d.dir.CreateUnnamed([]byte(lockWords), 0o600, nil)
	if err == nil {
		if err = hold(f); err == nil {
			err = d.dir.Name(f, lockName)
		}
		if err == nil {
			return func() {
				if d.is(lockName, f) { // not another's, when somebody took ours away
					_ = d.dir.Remove(lockName)
				}
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	// Where a file cannot be made before its name there is no telling which lock is abandoned,
	// so this one must not look like ours.
	if err := d.dir.Create(lockName, nil, 0o600); err != nil {
		return nil, err
	}
	return func() { _ = d.dir.Remove(lockName) }, nil
}

// abandoned removes a lock of ours that no process holds any more.
func (d *gitDir) abandoned() bool {
	f, _, err := d.dir.Open(lockName)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	words := make([]byte, len(lockWords)+1)
	n, _ := f.ReadAt(words, 0)
	if !strings.HasPrefix(string(words[:n]), lockWords) || n != len(lockWords) || hold(f) != nil {
		return false
	}
	return d.is(lockName, f) && d.dir.Remove(lockName) == nil
}

// is reports whether a name leads to an open file.
func (d *gitDir) is(name string, f *os.File) bool {
	in, err1 := safefile.StatFile(f)
	now, err2 := d.dir.Stat(name)
	return err1 == nil && err2 == nil && now.SameFile(in.Identity)
}

// writeFault is the fault of a file of git's that could not be written.
func writeFault(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(contract.PathDenied, err, "the system does not let this user write to the git directory").WithHint("the owner can change its permissions")
	case errors.Is(err, errors.ErrUnsupported):
		return fault.Wrap(contract.NotSupported, err, "the file system of the git directory cannot swap two files in one step").
			WithHint("the owner can keep the repository on a local file system, or commit without dodo")
	}
	return fault.Wrap(contract.InternalError, err, "the file system answered with an error").WithHint("nothing was committed; the owner should look at the disk")
}
