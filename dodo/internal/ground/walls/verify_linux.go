package walls

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What stands is looked at before the command is let in: a step that did nothing, whatever
// the reason, must not go unseen.

// spaces are the namespaces of a sandbox, by their names in /proc/self/ns.
var spaces = []string{"user", "mnt", "pid", "ipc", "uts", "net"}

const rootSpace = "root"

// Outside is what the first process must not have in common with the calling one.
func Outside() map[string]Identity {
	all := map[string]Identity{}
	for _, name := range spaces {
		if id, err := IdentityOf("/proc/self/ns/"+name, true); err == nil {
			all[name] = id
		}
	}
	if id, err := IdentityOf("/", true); err == nil {
		all[rootSpace] = id
	}
	return all
}

// IdentityOf tells what is at a path, with a link as its last part followed or not.
func IdentityOf(path string, follow bool) (Identity, error) {
	var st unix.Stat_t
	look := unix.Lstat
	if follow {
		look = unix.Stat
	}
	err := look(path, &st)
	return Identity{uint64(st.Dev), st.Ino}, err
}

// IdentityAt tells what a descriptor is of.
func IdentityAt(fd int) (Identity, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return Identity{uint64(st.Dev), st.Ino}, err
}

// verify looks at the walls from within.
func (h *helper) verify() error {
	for _, l := range h.Limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.What, &now); err != nil || now.Max > l.Most || now.Cur > l.Most {
			return step("trial", fmt.Errorf("limit %d is %d: %w", l.What, now.Max, errors.Join(err, errMissing)))
		}
	}
	if h.Alone {
		return nil
	}
	if user, group := unix.Geteuid(), unix.Getegid(); user != h.User || group != h.Group {
		return step("trial", fmt.Errorf("user %d and group %d: %w", user, group, errMissing))
	}
	for _, name := range spaces {
		id, err := IdentityOf("/proc/self/ns/"+name, true)
		if err != nil || h.Outside[name] == (Identity{}) {
			return step("trial", fmt.Errorf("namespace %s: %w", name, errors.Join(err, errMissing)))
		}
		if own := name != "net" || h.Loopback; own && id == h.Outside[name] {
			return step("trial", fmt.Errorf("namespace %s: %w", name, errMissing))
		}
	}
	if self, err := os.Readlink("/proc/self"); self != "1" {
		return step("trial", fmt.Errorf("processes are seen as from %q: %w", self, errors.Join(err, errMissing)))
	}
	if h.Loopback {
		if err := loopbackIsUp(); err != nil {
			return step("trial", err)
		}
	}
	return h.verifyRoot()
}

var errMissing = errors.New("a wall is missing")

// verifyRoot looks whether only what the plan names is there, as it says.
func (h *helper) verifyRoot() error {
	id, err := IdentityOf("/", true)
	if err != nil {
		return step("trial", err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/", &fs); err != nil {
		return step("trial", err)
	}
	if id == h.Outside[rootSpace] || fs.Type != unix.TMPFS_MAGIC || fs.Flags&unix.ST_RDONLY == 0 {
		return step("trial", fmt.Errorf("root: %w", errMissing))
	}
	for _, m := range h.Mounts {
		if m.ID == (Identity{}) {
			continue
		}
		if err := m.verify(); err != nil {
			return step(StepMoved, fmt.Errorf("%s: %w", m.To, err))
		}
	}
	for _, c := range h.Covers {
		fd, err := Unlinked(c.Path)
		if errors.Is(err, unix.ENOENT) && h.own() {
			continue // moved with its cover
		}
		if err != nil {
			return step(StepCover, err)
		}
		id, err := IdentityAt(fd)
		unix.Close(fd)
		if err != nil || id == c.ID {
			return step(StepCover, fmt.Errorf("%s: %w", filepath.Base(c.Path), errors.Join(err, errMissing)))
		}
	}
	return nil
}

// verify looks whether a mount of the workspace is one, of what it should be.
func (m Mount) verify() error {
	fd, err := Unlinked(m.To)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	id, err := IdentityAt(fd)
	if err != nil {
		return err
	}
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, 0, &st); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	mounted := st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0
	if id != m.ID || !mounted || !m.Write && fs.Flags&unix.ST_RDONLY == 0 {
		return errMissing
	}
	return nil
}

// Unlinked opens a path, for nothing but to look, with no link on the way.
func Unlinked(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// loopbackIsUp looks whether the interface of programs' own servers can be used.
func loopbackIsUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	if request.Uint16()&unix.IFF_UP == 0 {
		return fmt.Errorf("loopback: %w", errMissing)
	}
	return nil
}
