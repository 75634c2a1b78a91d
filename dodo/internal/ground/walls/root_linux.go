package walls

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// stage is where the new root is put together: any directory, which is hidden meanwhile.
const stage = "/tmp"

// Sizes of the file systems in memory. Files without content take room too.
const (
	rootOptions  = "mode=0755,size=4m,nr_inodes=16k"
	tempOptions  = "mode=1777,size=1g,nr_inodes=400k"
	coverOptions = "mode=0755,size=64k,nr_inodes=8"
	shmOptions   = "mode=1777,size=256m,nr_inodes=16k"
)

// makeRoot gives the process a file system of its own, in which only what the plan names
// is: the old one is gone when it returns.
func (h *helper) makeRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return step("mounts made private", err)
	}
	trees := make([]int, len(h.Mounts))
	for i, m := range h.Mounts {
		fd, err := tree(m)
		if err != nil {
			if m.Optional && leftOut(err) {
				trees[i] = -1
				continue
			}
			if m.ID != (Identity{}) {
				return step(StepMoved, fmt.Errorf("%s: %w", m.To, err))
			}
			return step("mount of "+m.To, err)
		}
		trees[i] = fd
	}
	if err := unix.Mount("dodo", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootOptions); err != nil {
		return step("root in memory", err)
	}
	for _, f := range []struct {
		at, kind, options string
		flags             uintptr
	}{
		{"/proc", "proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"/tmp", "tmpfs", tempOptions, unix.MS_NOSUID | unix.MS_NODEV},
		{"/dev/shm", "tmpfs", shmOptions, unix.MS_NOSUID | unix.MS_NODEV},
		{"/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=620", unix.MS_NOSUID | unix.MS_NOEXEC},
	} {
		if err := os.MkdirAll(stage+f.at, 0o755); err != nil {
			return step("root", err)
		}
		if err := unix.Mount(f.kind, stage+f.at, f.kind, f.flags, f.options); err != nil {
			return step("mount of "+f.at, err)
		}
	}
	if countsProcesses() {
		if err := countProcesses(stage + "/proc"); err != nil {
			return step("number of processes", err)
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, stage+"/proc", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return step("mount of /proc", err)
	}
	for _, l := range h.Links {
		if err := os.MkdirAll(filepath.Dir(stage+l.Name), 0o755); err != nil {
			return step("root", err)
		}
		if err := os.Symlink(l.To, stage+l.Name); err != nil && !errors.Is(err, os.ErrExist) {
			return step("root", err)
		}
	}
	r, err := openRoot()
	if err != nil {
		return step("root", err)
	}
	defer r.close()
	for i, m := range h.Mounts {
		if trees[i] < 0 {
			continue
		}
		err := r.attach(trees[i], m.To)
		unix.Close(trees[i])
		if err != nil && m.ID != (Identity{}) {
			return step(StepMoved, err)
		}
		if err != nil {
			return step("mount of "+m.To, err)
		}
		if m.Write {
			r.foreign = append(r.foreign, m.To)
		}
	}
	if !h.Skips("cover") {
		if err := r.cover(h.Covers); err != nil {
			return err
		}
	}
	return step("root", enterRoot())
}

// leftOut says of an optional path that there is nothing to show.
func leftOut(err error) bool {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ELOOP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// errMoved says that something else is where the server saw a directory.
var errMoved = errors.New("something else is there now")

// tree takes a copy of what is mounted at a path, with all below it, that nobody else sees.
func tree(m Mount) (int, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE
	var fd int
	var err error
	if m.ID == (Identity{}) {
		fd, err = unix.OpenTree(unix.AT_FDCWD, m.From, flags)
	} else {
		var at int
		if at, err = Unlinked(m.From); err == nil {
			var id Identity
			if id, err = IdentityAt(at); err == nil && id != m.ID {
				err = errMoved
			}
			if err == nil {
				fd, err = unix.OpenTree(at, "", flags|unix.AT_EMPTY_PATH)
			}
			unix.Close(at)
		}
	}
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if m.Device {
		attr.Attr_set &^= unix.MOUNT_ATTR_NODEV
	}
	if !m.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// newRoot is the root while it is put together.
type newRoot struct {
	fd      int
	memory  map[uint64]bool // devices that are in memory, where mount points may be made
	foreign []string        // what was mounted and others write: no link is followed in there
}

func openRoot() (*newRoot, error) {
	r := &newRoot{memory: map[uint64]bool{}}
	for _, dir := range []string{"", "/tmp", "/dev/shm"} {
		id, err := IdentityOf(stage+dir, false)
		if err != nil {
			return nil, err
		}
		r.memory[id.Dev] = true
	}
	var err error
	r.fd, err = unix.Open(stage, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return r, err
}

func (r *newRoot) close() { unix.Close(r.fd) }

// open opens what is at a path of the new root, as seen from within.
func (r *newRoot) open(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if slices.ContainsFunc(r.foreign, func(dir string) bool { return Within(dir, path) }) {
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
	}
	for {
		fd, err := unix.Openat2(r.fd, path, &how)
		if !errors.Is(err, unix.EAGAIN) { // something was renamed meanwhile
			return fd, err
		}
	}
}

// attach puts a tree at a path. Where it is not there yet it is made, in memory alone: what
// belongs to others is not changed.
func (r *newRoot) attach(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	at, err := r.open(path)
	if errors.Is(err, unix.ENOENT) {
		if at, err = r.make(path, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// make makes an empty directory or file at a path, and what is above it.
func (r *newRoot) make(path string, dir bool) (int, error) {
	above := filepath.Dir(path)
	parent, err := r.open(above)
	if errors.Is(err, unix.ENOENT) && above != "/" {
		parent, err = r.make(above, true)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	id, err := IdentityAt(parent)
	if err != nil {
		return -1, err
	}
	if !r.memory[id.Dev] {
		return -1, unix.ENOENT
	}
	name := filepath.Base(path)
	if dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = unix.Mknodat(parent, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, err
	}
	return unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// cover makes what must not be seen look empty. When something else is at its path it was
// moved meanwhile, and what was in it may be seen somewhere else: the command does not start.
func (r *newRoot) cover(covers []Cover) error {
	if len(covers) == 0 {
		return nil
	}
	// What covers is in a file system of its own, which nobody sees as a whole.
	const from, file, dir = stage + "/.covers", stage + "/.covers/file", stage + "/.covers/directory"
	if err := os.Mkdir(from, 0o755); err != nil {
		return step("root", err)
	}
	if err := unix.Mount("dodo", from, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, coverOptions); err != nil {
		return step("root", err)
	}
	if err := errors.Join(os.WriteFile(file, nil, 0o444), os.Mkdir(dir, 0o555)); err != nil {
		return step("root", err)
	}
	for _, c := range covers {
		if err := r.coverOne(c, file, dir); err != nil {
			return step(StepCover, err)
		}
	}
	return step("root", errors.Join(unix.Unmount(from, unix.MNT_DETACH), os.Remove(from)))
}

func (r *newRoot) coverOne(c Cover, file, dir string) error {
	at, err := r.open(c.Path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	if c.ID != (Identity{uint64(st.Dev), st.Ino}) {
		return errMoved
	}
	from := file
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		from = dir
	}
	fd, err := tree(Mount{From: from})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// enterRoot makes the stage the root, which cannot be written then, and lets go of the old one.
func enterRoot() error {
	if err := os.Chdir(stage); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
