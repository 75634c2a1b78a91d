package safefile

import (
	"bytes"
	"errors"
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
	if err = fillLike(f, data, model); err != nil {
		f.Close()
		unix.Unlinkat(d.fd, name, 0)
		return pathError("create", name, err)
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
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
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
