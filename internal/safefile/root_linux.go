package safefile

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is an open directory. It is safe for use by several goroutines until Close.
type Root struct {
	fd   int
	path string
	walk bool // the kernel has no openat2: resolve component by component
}

// OpenRoot opens the directory at an absolute path. With [RefuseLinks] a link in
// any component gives a *[LinkError] that names it; a component that is neither
// gives [ErrNotDirectory]; a missing one gives an error that is fs.ErrNotExist.
func OpenRoot(path string, links Links) (*Root, error) {
	if !strings.HasPrefix(path, "/") || path != "/" && !plain(path[1:]) {
		return nil, pathError("open", path, ErrName)
	}
	var fd int
	var err error
	if links == FollowLinks {
		fd, err = open(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY)
	} else {
		// One call where the kernel can refuse links by itself; the walk then only has
		// to say which component was at fault. None is where one is missing: the kernel
		// came to it without meeting a link.
		fd, err = openLinkless(path)
		switch {
		case err == nil:
			return &Root{fd: fd, path: path}, nil
		case !errors.Is(err, unix.ENOENT):
			fd, err = openChain(path)
		}
	}
	if err != nil {
		var link *LinkError
		if errors.As(err, &link) {
			return nil, err
		}
		return nil, pathError("open", path, plainDirError(err))
	}
	return &Root{fd: fd, path: path, walk: !hasOpenat2(fd)}, nil
}

// openChain walks from "/" and follows no link.
func openChain(path string) (int, error) {
	fd, err := open(unix.AT_FDCWD, "/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	end := 0
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" {
			continue // path is "/"
		}
		end += 1 + len(part)
		next, err := openPart(fd, part)
		unix.Close(fd)
		if err != nil {
			if errors.Is(err, unix.ELOOP) {
				err = &LinkError{Path: path[:end]}
			}
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// openPart opens one directory component; a link gives ELOOP.
func openPart(dir int, part string) (int, error) {
	fd, err := open(dir, part, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, err
	}
	switch typeOf(st.Mode) {
	case Directory:
		return fd, nil
	case Link:
		err = unix.ELOOP
	default:
		err = unix.ENOTDIR
	}
	unix.Close(fd)
	return -1, err
}

// hasOpenat2 asks the kernel once per root; a seccomp filter may also forbid it.
func hasOpenat2(fd int) bool {
	got, err := openat2(fd, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		unix.Close(got)
	}
	return !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM)
}

// Path returns the path the root was opened by.
func (r *Root) Path() string { return r.path }

// InPlace reports whether the root's path leads, by its last name and not by a link, to the
// directory that is open.
func (r *Root) InPlace() (bool, error) {
	var open, named unix.Stat_t
	if err := fstat(r.fd, &open); err != nil {
		return false, pathError("stat", ".", err)
	}
	if err := lstatat(unix.AT_FDCWD, r.path, &named); err != nil {
		return false, pathError("stat", r.path, err)
	}
	return open.Dev == named.Dev && open.Ino == named.Ino, nil
}

// Close releases the descriptor.
func (r *Root) Close() error { return unix.Close(r.fd) }

// Sub opens the directory rel below r as a root of its own. A component that is a
// link or no directory gives [ErrNotDirectory].
func (r *Root) Sub(rel string) (*Root, error) {
	fd, err := r.resolve(rel, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError("open", rel, plainDirError(err))
	}
	path := r.path
	if rel != "." {
		path = strings.TrimSuffix(path, "/") + "/" + rel
	}
	return &Root{fd: fd, path: path, walk: r.walk}, nil
}

// Open opens a regular file for reading. The identity is that of the opened file.
// Anything but a regular file gives [ErrNotRegular], at once; so does a link, also
// in the directories on the way.
func (r *Root) Open(rel string) (*os.File, Identity, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	fd, err := r.resolve(rel, flags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) { // only the owner of a file may ask for O_NOATIME
		fd, err = r.resolve(rel, flags)
	}
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR):
		return nil, Identity{}, pathError("open", rel, ErrNotRegular) // a socket gives ENXIO
	case err != nil:
		return nil, Identity{}, pathError("open", rel, err)
	}
	var st unix.Stat_t
	err = fstat(fd, &st)
	if err == nil && typeOf(st.Mode) != Regular {
		err = ErrNotRegular
	}
	if err != nil {
		unix.Close(fd)
		return nil, Identity{}, pathError("open", rel, err)
	}
	return os.NewFile(uintptr(fd), rel), identity(&st), nil
}

// Stat tells about rel without following a link: a link is reported as a link, and
// a link among the directories on the way gives [ErrNotDirectory]. "." is the root
// itself.
func (r *Root) Stat(rel string) (Info, error) {
	if !plain(rel) {
		return Info{}, pathError("stat", rel, ErrName)
	}
	var st unix.Stat_t
	if rel == "." {
		if err := fstat(r.fd, &st); err != nil {
			return Info{}, pathError("stat", rel, err)
		}
		return info(&st), nil
	}
	fd := r.fd
	dir, base := split(rel)
	if dir != "" {
		var err error
		if fd, err = r.resolve(dir, unix.O_PATH|unix.O_DIRECTORY); err != nil {
			return Info{}, pathError("stat", rel, plainDirError(err))
		}
		defer unix.Close(fd)
	}
	if err := lstatat(fd, base, &st); err != nil {
		return Info{}, pathError("stat", rel, err)
	}
	return info(&st), nil
}

// Peek is the Stat of hot paths: one system call, and the price that a link among the
// directories on the way is followed. It is for who has just seen, from the root down,
// that these are directories, and takes no more from the answer than that something
// changed: what it says may be about a file outside the root when somebody swaps a
// directory at that moment.
func (r *Root) Peek(rel string) (Info, error) {
	if !plain(rel) {
		return Info{}, pathError("stat", rel, ErrName)
	}
	var st unix.Stat_t
	if err := lstatat(r.fd, rel, &st); err != nil {
		if err == unix.ENOTDIR {
			err = ErrNotDirectory
		}
		return Info{}, pathError("stat", rel, err)
	}
	return info(&st), nil
}

// StatFile tells about an open file.
func StatFile(f *os.File) (Info, error) {
	var st unix.Stat_t
	conn, err := f.SyscallConn()
	if err != nil {
		return Info{}, err
	}
	var serr error
	if err := conn.Control(func(fd uintptr) { serr = fstat(int(fd), &st) }); err != nil {
		return Info{}, err
	}
	return info(&st), serr
}

// resolve opens rel below the root without following a link.
func (r *Root) resolve(rel string, flags int) (int, error) {
	if !plain(rel) {
		return -1, ErrName
	}
	if !r.walk {
		return openat2(r.fd, rel, flags)
	}
	if rel == "." {
		return open(r.fd, ".", flags)
	}
	dir, base := split(rel)
	fd := r.fd
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue // no directory on the way
		}
		next, err := openPart(fd, part)
		if fd != r.fd {
			unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	got, err := open(fd, base, flags|unix.O_NOFOLLOW)
	if fd != r.fd {
		unix.Close(fd)
	}
	return got, err
}

func plainDirError(err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return ErrNotDirectory
	}
	return err
}

func pathError(op, rel string, err error) error {
	return &fs.PathError{Op: op, Path: rel, Err: err}
}
