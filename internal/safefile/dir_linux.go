package safefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is a directory open for listing and changing. Everything in it is reached by one
// name, never by a path, so no link on a way can be followed. It is safe for use by several
// goroutines until Close, but for [Dir.Entries], which one goroutine at a time may call.
type Dir struct {
	fd     int
	listed bool // the next listing must go back to the start
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY

// OpenDir opens the directory rel below r. A component that is a link or no directory gives
// [ErrNotDirectory].
func (r *Root) OpenDir(rel string) (*Dir, error) {
	fd, err := r.resolve(rel, dirFlags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) { // only the owner may ask for O_NOATIME
		fd, err = r.resolve(rel, dirFlags)
	}
	if err != nil {
		return nil, pathError("open", rel, plainDirError(err))
	}
	return &Dir{fd: fd}, nil
}

// Close releases the descriptor.
func (d *Dir) Close() error { return unix.Close(d.fd) }

// Sub opens the directory name.
func (d *Dir) Sub(name string) (*Dir, error) {
	if !single(name) {
		return nil, pathError("open", name, ErrName)
	}
	fd, err := openQuietly(d.fd, name, dirFlags|unix.O_NOFOLLOW)
	if err != nil {
		return nil, pathError("open", name, plainDirError(err))
	}
	return &Dir{fd: fd}, nil
}

// Self tells about the directory.
func (d *Dir) Self() (Info, error) {
	var st unix.Stat_t
	if err := fstat(d.fd, &st); err != nil {
		return Info{}, pathError("stat", ".", err)
	}
	return info(&st), nil
}

// Searchable gives an error when this process may not reach what is in the directory, or would
// not list it or reach that without the powers that root has over permissions.
func (d *Dir) Searchable() error {
	var st unix.Stat_t
	err := lstatat(d.fd, ".", &st)
	if err == nil && os.Geteuid() == 0 {
		bits := st.Mode & 5
		switch {
		case st.Uid == 0:
			bits = st.Mode >> 6 & 5
		case st.Gid == 0:
			bits = st.Mode >> 3 & 5
		}
		if bits != 5 {
			err = unix.EACCES
		}
	}
	if err != nil {
		return pathError("search", ".", err)
	}
	return nil
}

// Stat tells about the entry name; a link is reported as a link.
func (d *Dir) Stat(name string) (Info, error) {
	if !single(name) {
		return Info{}, pathError("stat", name, ErrName)
	}
	var st unix.Stat_t
	if err := lstatat(d.fd, name, &st); err != nil {
		return Info{}, pathError("stat", name, err)
	}
	return info(&st), nil
}

// KernelMade reports whether the directory is on a file system whose files are made by the
// kernel, such as proc: they call themselves regular and are no files.
func (d *Dir) KernelMade() (bool, error) { return kernelMade(d.fd) }

// KernelMade reports whether an open file is one that the kernel makes, such as those of
// proc: it calls itself regular, with a size of 0.
func KernelMade(f *os.File) (is bool, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false, err
	}
	if cerr := conn.Control(func(fd uintptr) { is, err = kernelMade(int(fd)) }); cerr != nil {
		return false, cerr
	}
	return is, err
}

func kernelMade(fd int) (bool, error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return false, pathError("statfs", ".", err)
	}
	switch uint32(st.Type) { // its width and sign differ between architectures
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.DEVPTS_SUPER_MAGIC, unix.BPF_FS_MAGIC,
		unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, unix.HUGETLBFS_MAGIC, configfs, mqueue:
		return true, nil
	}
	return false, nil
}

// The numbers of configfs and of POSIX message queues (linux/fs/configfs/mount.c,
// linux/ipc/mqueue.c), which package unix does not have.
const (
	configfs = 0x62656570
	mqueue   = 0x19800202
)

// Entries returns the names in the directory, in no order.
func (d *Dir) Entries() ([]Entry, error) {
	if d.listed {
		if _, err := unix.Seek(d.fd, 0, io.SeekStart); err != nil {
			return nil, pathError("readdir", ".", err)
		}
	}
	d.listed = true
	list, err := readEntries(d.fd)
	if err != nil {
		return nil, pathError("readdir", ".", err)
	}
	return list, nil
}

// Open opens the regular file name for reading; anything else gives [ErrNotRegular], at
// once.
func (d *Dir) Open(name string) (*os.File, Info, error) {
	fd, in, err := d.open(name)
	if err != nil {
		return nil, Info{}, err
	}
	return os.NewFile(uintptr(fd), name), in, nil
}

// Load reads the regular file name into buf, which grows when it must, and tells what the
// file was when it was opened. A file of more than max bytes gives more and no data. It is
// the Open, Read and Close of hot paths: what is appended meanwhile is not waited for.
func (d *Dir) Load(name string, buf []byte, max int64) (data []byte, in Info, more bool, err error) {
	data = buf[:0]
	fd, in, err := d.open(name)
	if err != nil {
		return data, Info{}, false, err
	}
	defer unix.Close(fd)
	if in.Size > max {
		return data, in, true, nil
	}
	if int64(cap(data)) <= in.Size {
		data = make([]byte, 0, in.Size+1)
	}
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)] // it has more than it said: make room as append does
		}
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return data, in, false, pathError("read", name, err)
		}
		data = data[:len(data)+n]
		switch size := int64(len(data)); {
		case size > max:
			return data[:0], in, true, nil
		case n == 0, size == in.Size: // the end, without asking for it once more
			return data, in, false, nil
		}
	}
}

func (d *Dir) open(name string) (int, Info, error) {
	if !single(name) {
		return -1, Info{}, pathError("open", name, ErrName)
	}
	fd, err := openQuietly(d.fd, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR):
		return -1, Info{}, pathError("open", name, ErrNotRegular) // a socket gives ENXIO
	case err != nil:
		return -1, Info{}, pathError("open", name, err)
	}
	var st unix.Stat_t
	err = fstat(fd, &st)
	if err == nil && typeOf(st.Mode) != Regular {
		err = ErrNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return -1, Info{}, pathError("open", name, err)
	}
	return fd, info(&st), nil
}

// openQuietly leaves the access time alone where the system lets this user ask for that.
func openQuietly(dir int, name string, flags int) (int, error) {
	fd, err := open(dir, name, flags|unix.O_NOATIME)
	if err == unix.EPERM {
		fd, err = open(dir, name, flags)
	}
	return fd, err
}

// Create makes the file name, which nothing may have yet, with exactly perm, and flushes
// it to disk. What was begun and failed is removed.
func (d *Dir) Create(name string, data []byte, perm fs.FileMode) error {
	if !single(name) {
		return pathError("create", name, ErrName)
	}
	err := writeNew(d.fd, name, data, perm)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		unix.Unlinkat(d.fd, name, 0)
	}
	if err != nil {
		return pathError("create", name, err)
	}
	return nil
}

// Mkdir makes the directory name; the umask takes from perm as usual.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error {
	if !single(name) {
		return pathError("mkdir", name, ErrName)
	}
	if err := unix.Mkdirat(d.fd, name, uint32(perm.Perm())); err != nil {
		return pathError("mkdir", name, err)
	}
	return nil
}

// Move gives the entry name another name in the directory to, which nothing may have yet:
// then the error is fs.ErrExist.
func (d *Dir) Move(name string, to *Dir, newName string) error {
	return d.rename(name, to, newName, unix.RENAME_NOREPLACE)
}

// Exchange swaps two entries in one step: at no moment does either name lead nowhere. A
// file system that cannot do it gives errors.ErrUnsupported, and nothing has changed.
func (d *Dir) Exchange(name string, to *Dir, other string) error {
	return d.rename(name, to, other, unix.RENAME_EXCHANGE)
}

func (d *Dir) rename(name string, to *Dir, newName string, flags uint) error {
	if !single(name) || !single(newName) {
		return pathError("rename", name, ErrName)
	}
	err := unix.Renameat2(d.fd, name, to.fd, newName, flags)
	if err == unix.EINVAL || err == unix.ENOSYS {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return pathError("rename", name, err)
	}
	return nil
}

// Link gives the file name a second name, which nothing may have yet: then the error is
// fs.ErrExist.
func (d *Dir) Link(name string, to *Dir, newName string) error {
	if !single(name) || !single(newName) {
		return pathError("link", name, ErrName)
	}
	if err := unix.Linkat(d.fd, name, to.fd, newName, 0); err != nil {
		return pathError("link", name, err)
	}
	return nil
}

// Remove removes the entry name, which is no directory.
func (d *Dir) Remove(name string) error { return d.unlink(name, 0) }

// RemoveDir removes the empty directory name.
func (d *Dir) RemoveDir(name string) error { return d.unlink(name, unix.AT_REMOVEDIR) }

func (d *Dir) unlink(name string, flags int) error {
	if !single(name) {
		return pathError("remove", name, ErrName)
	}
	if err := unix.Unlinkat(d.fd, name, flags); err != nil {
		return pathError("remove", name, err)
	}
	return nil
}

// Sync flushes the directory's names to disk. A file system that has no such thing is not
// an error.
func (d *Dir) Sync() error {
	err := again(func() error { return unix.Fsync(d.fd) })
	if err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return pathError("sync", ".", err)
	}
	return nil
}

// single reports whether name is one ordinary component.
func single(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
