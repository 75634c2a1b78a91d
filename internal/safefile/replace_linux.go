package safefile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CreateLike makes the file name, which nothing may have yet, with the mode, the owner and
// the extended attributes (access lists among them) of model, and flushes it to disk. What
// the system does not let this user set gives fs.ErrPermission; attributes that only the
// system gives are left to it. What was begun and failed is removed.
func (d *Dir) CreateLike(name string, data []byte, model *os.File) error {
	if !single(name) {
		return pathError("create", name, ErrName)
	}
	fd, err := open3(d.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return pathError("create", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err = errors.Join(fillLike(f, data, model), f.Close()); err != nil {
		unix.Unlinkat(d.fd, name, 0)
		return pathError("create", name, err)
	}
	return nil
}

// CreateUnnamed makes a file in the directory that has no name, and flushes it to disk. It gets
// the mode, owner and attributes of model, or without one exactly perm. [Dir.Name] gives it a
// name; closed without one it is gone. A file system that has no such files gives
// errors.ErrUnsupported.
func (d *Dir) CreateUnnamed(data []byte, perm fs.FileMode, model *os.File) (*os.File, error) {
	fd, err := open3(d.fd, ".", unix.O_WRONLY|unix.O_TMPFILE, 0o600)
	if err == unix.EOPNOTSUPP || err == unix.EISDIR || err == unix.EINVAL {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return nil, pathError("create", ".", err)
	}
	f := os.NewFile(uintptr(fd), "unnamed")
	if model != nil {
		err = fillLike(f, data, model)
	} else {
		err = fill(f, data, perm)
	}
	if err != nil {
		f.Close()
		return nil, pathError("create", ".", err)
	}
	return f, nil
}

// Name gives a file of [Dir.CreateUnnamed] a name, which nothing may have: else the error is
// fs.ErrExist. Without /proc it gives errors.ErrUnsupported.
func (d *Dir) Name(f *os.File, name string) error {
	if !single(name) {
		return pathError("link", name, ErrName)
	}
	err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), d.fd, name, unix.AT_SYMLINK_FOLLOW)
	if err == unix.ENOENT {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return pathError("link", name, err)
	}
	return nil
}

func open3(dir int, name string, flags int, perm uint32) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

// fill writes a new file with exactly perm and flushes it.
func fill(f *os.File, data []byte, perm fs.FileMode) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(perm.Perm()); err != nil {
		return err
	}
	return f.Sync()
}

func fillLike(f *os.File, data []byte, model *os.File) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	want, err := StatFile(model)
	if err != nil {
		return err
	}
	got, err := StatFile(f)
	if err != nil {
		return err
	}
	if got.UID != want.UID || got.GID != want.GID {
		if err := f.Chown(int(want.UID), int(want.GID)); err != nil {
			return err
		}
	}
	if got.Mode != want.Mode&0o777 {
		if err := f.Chmod(fs.FileMode(want.Mode & 0o777)); err != nil {
			return err
		}
	}
	if err := copyAttributes(f, model); err != nil {
		return err
	}
	return f.Sync()
}

// copyAttributes leaves out what belongs to the system ("security.", "trusted.").
func copyAttributes(f, model *os.File) error {
	buf := make([]byte, 1024)
	var n int
	for {
		var err error
		n, err = unix.Flistxattr(int(model.Fd()), buf)
		if err == unix.ERANGE && len(buf) < 1<<16 {
			buf = make([]byte, 1<<16)
			continue
		}
		if err == unix.ENOTSUP || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		break
	}
	value := make([]byte, 1<<16) // the largest there is
	for name := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if !bytes.HasPrefix(name, []byte("user.")) && !bytes.HasPrefix(name, []byte("system.")) {
			continue
		}
		size, err := unix.Fgetxattr(int(model.Fd()), string(name), value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), string(name), value[:size], 0)
		}
		if err != nil && err != unix.ENOTSUP {
			return err
		}
	}
	return nil
}

// Lease asks the system to hold back everybody who opens the file of f for writing, until
// [EndLease]; it must be brief. f must be open for reading only. writers says that somebody
// has it open for writing already, or mapped so, and there is no lease. Where the system
// gives this user none, or the file system has none, both are false.
func Lease(f *os.File) (held, writers bool) {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err == nil, err == unix.EAGAIN
}

// Undisturbed reports whether nobody waits for the end of a lease that f has.
func Undisturbed(f *os.File) bool {
	kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	return err == nil && kind == unix.F_RDLCK
}

// EndLease lets go on who was held back. Without a lease it does nothing.
func EndLease(f *os.File) { _, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK) }

// AwaitWrite returns when a write to the file of f that has begun is at its end. Many file systems
// (ext4, btrfs, tmpfs) keep a file locked while they write to it, and look for data in it under the
// same lock; others do not wait. f stands at its beginning then.
func AwaitWrite(f *os.File) {
	_, _ = unix.Seek(int(f.Fd()), 0, unix.SEEK_DATA)
	_, _ = unix.Seek(int(f.Fd()), 0, io.SeekStart)
}

// Umask is what the process takes from the permissions of new files.
func Umask() fs.FileMode {
	const usual = 0o022
	status, err := os.ReadFile("/proc/self/status") // asking the kernel directly would change it
	if err != nil {
		return usual
	}
	_, rest, ok := strings.Cut(string(status), "\nUmask:")
	if !ok {
		return usual
	}
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return usual
	}
	return fs.FileMode(mask) & 0o777
}
