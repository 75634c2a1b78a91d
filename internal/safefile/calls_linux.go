package safefile

import "golang.org/x/sys/unix"

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func open(dir int, name string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

func openat2(dir int, rel string, flags int) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	err = again(func() error {
		fd, err = unix.Openat2(dir, rel, &how)
		return err
	})
	return fd, err
}

// openLinkless opens the directory at an absolute path without following a link.
func openLinkless(path string) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	err = again(func() error {
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &how)
		return err
	})
	return fd, err
}

func fstat(fd int, st *unix.Stat_t) error {
	return again(func() error { return unix.Fstat(fd, st) })
}

func lstatat(dir int, name string, st *unix.Stat_t) error {
	for {
		if err := unix.Fstatat(dir, name, st, unix.AT_SYMLINK_NOFOLLOW); err != unix.EINTR {
			return err
		}
	}
}

func identity(st *unix.Stat_t) Identity {
	return Identity{
		Dev:     uint64(st.Dev), // its width differs between architectures
		Ino:     st.Ino,
		Size:    st.Size,
		MtimeNS: st.Mtim.Nano(),
		CtimeNS: st.Ctim.Nano(),
	}
}

func info(st *unix.Stat_t) Info {
	return Info{
		Identity: identity(st),
		Type:     typeOf(st.Mode),
		Mode:     st.Mode & 0o7777,
		UID:      st.Uid,
		GID:      st.Gid,
		Hard:     uint64(st.Nlink), // its width differs between architectures
	}
}

func typeOf(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return Regular
	case unix.S_IFDIR:
		return Directory
	case unix.S_IFLNK:
		return Link
	}
	return Other
}
