package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// stage is where the new root is put together: any directory, which is hidden meanwhile.
const stage = "/tmp"

// Sizes of the file systems in memory.
const (
	rootOptions = "mode=0755,size=4m"
	tempOptions = "mode=1777,size=1g"
	shmOptions  = "mode=1777,size=256m"
)

// makeRoot gives the process a file system of its own, in which only what the plan names
// is: the old one is gone when it returns.
func (h *helper) makeRoot() error {
	if h.Skip == "root" {
		return nil
	}
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
		{"/proc", "proc", "", unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
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
	for _, l := range h.Links {
		if err := os.MkdirAll(filepath.Dir(stage+l.Name), 0o755); err != nil {
			return step("root", err)
		}
		if err := os.Symlink(l.To, stage+l.Name); err != nil && !errors.Is(err, os.ErrExist) {
			return step("root", err)
		}
	}
	for i, m := range h.Mounts {
		if trees[i] < 0 {
			continue
		}
		err := attach(trees[i], stage+m.To)
		unix.Close(trees[i])
		if err != nil {
			return step("mount of "+m.To, err)
		}
	}
	if err := h.cover(); err != nil {
		return err
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

// tree takes a copy of what is mounted at a path, with all below it, that nobody else sees.
func tree(m mount) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, m.From, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
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

// attach puts a tree at a path, which is made when it is not there.
func attach(fd int, at string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if _, err := os.Lstat(at); errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			err = os.Mkdir(at, 0o755)
		} else {
			err = os.WriteFile(at, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// cover makes what must not be seen look empty. A path that is not there any more was moved
// meanwhile, and what was in it may be seen somewhere else: the command does not start.
func (h *helper) cover() error {
	if len(h.Covers) == 0 {
		return nil
	}
	const file, dir = stage + "/.empty", stage + "/.void"
	if err := errors.Join(os.WriteFile(file, nil, 0o444), os.Mkdir(dir, 0o555)); err != nil {
		return step("root", err)
	}
	for _, path := range h.Covers {
		var st unix.Stat_t
		if err := unix.Lstat(stage+path, &st); err != nil {
			return step(stepCover, err)
		}
		from := file
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			from = dir
		case unix.S_IFLNK: // it has no content, and what it names is judged by its own name
			continue
		}
		fd, err := tree(mount{From: from})
		if err != nil {
			return step("cover", err)
		}
		// The last part is not followed: a link that came meanwhile leads nowhere else.
		err = unix.MoveMount(fd, "", unix.AT_FDCWD, stage+path, unix.MOVE_MOUNT_F_EMPTY_PATH)
		unix.Close(fd)
		if err != nil {
			return step(stepCover, err)
		}
	}
	return step("root", errors.Join(os.Remove(file), os.Remove(dir)))
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
