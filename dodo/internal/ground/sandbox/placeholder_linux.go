package sandbox

import (
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"time"

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
	"config":          "",
	"config.worktree": "",
}

var standInNames = slices.Sorted(maps.Keys(standIns))

// A standIn is one that this command relies on.
type standIn struct {
	dir  int // descriptor of the git directory
	name string
	file *os.File
}

// placeholders makes them, and the directory for hooks. remove gives them up.
func placeholders(git []string) (remove func()) {
	var held []standIn
	for _, dir := range git {
		fd, err := walls.Unlinked(dir)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		// What is no repository yet gets nothing: it is shown as it is, and cannot be changed.
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

// standInAt makes one, or shares one that is there; nil where the file is git's own, or cannot
// be made. The last command of others may take away the one that is there at this moment.
func standInAt(dir int, name, content string) *os.File {
	for range 100 {
		f, again := tryStandIn(dir, name, content)
		if !again {
			return f
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func tryStandIn(dir int, name, content string) (f *os.File, again bool) {
	fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	made := err == nil
	if errors.Is(err, unix.EEXIST) {
		fd, err = unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, errors.Is(err, unix.ENOENT)
	}
	f = os.NewFile(uintptr(fd), name)
	if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil || !isAt(fd, dir, name) {
		f.Close()
		return nil, true
	}
	if made {
		if _, err := f.WriteString(content); err == nil {
			return f, false
		}
	} else if text, err := io.ReadAll(io.LimitReader(f, 64)); err == nil && string(text) == content {
		return f, false
	}
	f.Close()
	return nil, false
}

// isAt reports whether an open file is still what has the name.
func isAt(fd, dir int, name string) bool {
	var mine, there unix.Stat_t
	return unix.Fstat(fd, &mine) == nil && unix.Fstatat(dir, name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil && mine.Ino == there.Ino && mine.Dev == there.Dev
}

// remove takes a stand-in away when nobody else relies on it and it is still the one.
func (s standIn) remove() {
	defer s.file.Close()
	fd := int(s.file.Fd())
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var st unix.Stat_t
	if isAt(fd, s.dir, s.name) && unix.Fstat(fd, &st) == nil && st.Size == int64(len(standIns[s.name])) {
		_ = unix.Unlinkat(s.dir, s.name, 0)
	}
}
