package sandbox

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// A mount can only cover what is there. Files that would redirect git and are not there get
// a harmless stand-in for as long as a command runs that could make them. Each command holds
// a lock on the stand-ins; the last one removes them. One that a crash left does no harm, and
// the next command's end removes it.

// standIns are the names of such files in a git directory, with contents that mean what
// their absence means (gitrepository-layout(5)).
var standIns = map[string]string{
	"commondir":       ".",
	"config.worktree": "",
}

const mostStandIns = 64 // git directories that get some

// A standIn is one that this command relies on.
type standIn struct {
	dir  int // descriptor of the git directory
	name string
	file *os.File
}

// placeholders makes them, and the directory for hooks. remove gives them up.
func placeholders(git []string) (remove func()) {
	var held []standIn
	for i, dir := range git {
		if i == mostStandIns {
			break
		}
		fd, err := walls.Unlinked(dir)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || unix.Fstatat(fd, "HEAD", &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			unix.Close(fd)
			continue
		}
		_ = unix.Mkdirat(fd, "hooks", 0o755) // git makes it, too
		used := false
		for name, content := range standIns {
			if f := standInAt(fd, name, content); f != nil {
				held = append(held, standIn{fd, name, f})
				used = true
			}
		}
		if !used {
			unix.Close(fd)
		}
	}
	return func() {
		closed := map[int]bool{}
		for _, s := range held {
			s.remove()
		}
		for _, s := range held {
			if !closed[s.dir] {
				closed[s.dir] = true
				unix.Close(s.dir)
			}
		}
	}
}

// standInAt makes one, or shares one that is there; nil where the file is git's own.
func standInAt(dir int, name, content string) *os.File {
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	made := err == nil
	if errors.Is(err, unix.EEXIST) {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil { // somebody removes it at this moment
		f.Close()
		return nil
	}
	if made {
		if _, err := f.WriteString(content); err == nil {
			return f
		}
	} else if text, err := io.ReadAll(io.LimitReader(f, 64)); err == nil && string(text) == content {
		return f
	}
	f.Close()
	return nil
}

// remove takes a stand-in away when nobody else relies on it and it is still the one.
func (s standIn) remove() {
	defer s.file.Close()
	fd := int(s.file.Fd())
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var mine, there unix.Stat_t
	if unix.Fstat(fd, &mine) == nil && unix.Fstatat(s.dir, s.name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		mine.Ino == there.Ino && mine.Dev == there.Dev && mine.Size == int64(len(standIns[s.name])) {
		_ = unix.Unlinkat(s.dir, s.name, 0)
	}
}
