package confine

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel's documentation calls accesses, by the ABI that brought them.
const (
	fileABI1 = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	fileABI2 = fileABI1 | unix.LANDLOCK_ACCESS_FS_REFER
	fileABI3 = fileABI2 | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fileABI5 = fileABI3 | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileABI9 = fileABI5 | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

	netABI4  = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	netABI10 = netABI4 | unix.LANDLOCK_ACCESS_NET_BIND_UDP | unix.LANDLOCK_ACCESS_NET_CONNECT_SEND_UDP

	scopeABI6 = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// fullABI is the first that knows everything that is worth restricting where the filter
// denies every socket: what later ones add concerns sockets.
const fullABI = 6

// What rules allow. A rename within one directory needs no right to move.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayWrite = mayRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
	mayRun = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	// onFiles are the accesses that a rule for anything but a directory may have.
	onFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// masks are the accesses an ABI can restrict.
type masks struct{ files, net, scopes uint64 }

func masksOf(abi int) masks {
	var m masks
	switch {
	case abi >= 9:
		m.files = fileABI9
	case abi >= 5:
		m.files = fileABI5
	case abi >= 3:
		m.files = fileABI3
	case abi == 2:
		m.files = fileABI2
	case abi == 1:
		m.files = fileABI1
	}
	switch {
	case abi >= 10:
		m.net = netABI10
	case abi >= 4:
		m.net = netABI4
	}
	if abi >= 6 {
		m.scopes = scopeABI6
	}
	return m
}

func levelOf(abi int) Level {
	switch {
	case abi >= fullABI:
		return Full
	case abi > 0:
		return Partial
	}
	return None
}

// landlockABI asks the kernel. One without Landlock, with Landlock switched off at boot, or
// behind a container's filter that does not know it has ABI 0.
func landlockABI() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.EPERM:
		return 0, nil
	}
	return 0, fmt.Errorf("ask for Landlock: %w", errno)
}

// threadErratum is the correction that lets threads of one process signal each other
// although each has restricted itself. Go's scheduler lives on such signals.
const threadErratum = 1 << 1

// signalsOf takes the scope for signals out of a mask where it would hurt. The filter
// lets a worker signal nobody but itself in any case.
func signalsOf(scopes uint64, supervisor bool) uint64 {
	if scopes&unix.LANDLOCK_SCOPE_SIGNAL == 0 {
		return scopes
	}
	// The thread that stops a worker is another than the one that started it, and so not
	// in a domain above the worker's.
	fixed, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	if supervisor || errno != 0 || fixed&threadErratum == 0 {
		scopes &^= unix.LANDLOCK_SCOPE_SIGNAL
	}
	return scopes
}

// ruleset is a Landlock ruleset that is not yet in force.
type ruleset struct {
	fd int // -1: the kernel has no Landlock
	masks
}

// landlock makes the rules of a policy and notes in s what they are.
func landlock(p Policy, s *State) (*ruleset, error) {
	abi, err := landlockABI()
	if err != nil {
		return nil, err
	}
	s.LandlockABI, s.Level, s.Held = abi, levelOf(abi), map[string]ID{}
	r := &ruleset{fd: -1, masks: masksOf(abi)}
	r.scopes = signalsOf(r.scopes, p.Supervisor)
	if p.Supervisor {
		r.files &^= mayRead
	}
	if abi > 0 {
		attr := unix.LandlockRulesetAttr{Handled_access_fs: r.files, Handled_access_net: r.net, Scoped: r.scopes}
		// Older kernels take a longer structure as long as what they do not know is 0.
		fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
		if errno != 0 {
			return nil, fmt.Errorf("make a ruleset: %w", errno)
		}
		r.fd = int(fd)
		unix.CloseOnExec(r.fd)
	}
	if err := r.fill(p, s); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *ruleset) fill(p Policy, s *State) error {
	for _, path := range p.Read {
		id, err := r.allow(path, mayRead, false)
		switch {
		case err == nil:
			s.Held[path] = id
		case !passing(err):
			return fmt.Errorf("allow a directory to be read: %w", err)
		}
	}
	for _, path := range p.Write {
		if _, err := r.allow(path, mayWrite, false); err != nil {
			return fmt.Errorf("allow a directory to be written: %w", err)
		}
	}
	for _, path := range p.System {
		id, err := r.allow(path, mayRead, true)
		switch {
		case err == nil:
			s.Held[path] = id
		case !passing(err):
			return fmt.Errorf("allow %s to be read: %w", path, err)
		}
	}
	if p.Supervisor {
		if _, err := r.allow(ownBinary, mayRun, true); err != nil {
			return fmt.Errorf("allow the program to be run: %w", err)
		}
	}
	return nil
}

// passing says that a path is not there (any more), is a link, or cannot be reached:
// then there is nothing to allow.
func passing(err error) bool {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// allow adds a rule for what is at a path now.
func (r *ruleset) allow(path string, access uint64, links bool) (ID, error) {
	fd, err := openPath(path, links)
	if err != nil {
		return ID{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, err
	}
	id := idOf(&st)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= onFiles
	}
	access &= r.files
	if r.fd < 0 || access == 0 {
		return id, nil
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return ID{}, errno
	}
	return id, nil
}

func idOf(st *unix.Stat_t) ID { return ID{Dev: uint64(st.Dev), Ino: st.Ino} }

// Identify tells what is at a path now, as [Self] looked at it: with links followed for
// [Policy.System], and with none on the way for [Policy.Read].
func Identify(path string, links bool) (ID, error) {
	fd, err := openPath(path, links)
	if err != nil {
		return ID{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	return idOf(&st), err
}

// openPath opens a path without the right to read it. Where links are not to be
// followed, none is on the way.
func openPath(path string, links bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if !links {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if errors.Is(err, unix.ENOSYS) { // Linux before 5.6 has no Landlock either: fd is only looked at
		flags := unix.O_PATH | unix.O_CLOEXEC
		if !links {
			flags |= unix.O_NOFOLLOW
		}
		fd, err = unix.Open(path, flags, 0)
	}
	return fd, err
}

// enforce puts the rules in force on every thread.
func (r *ruleset) enforce() error {
	defer r.close()
	if r.fd < 0 {
		return nil
	}
	return everyThread(func() (uintptr, uintptr, syscall.Errno) {
		return syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0)
	})
}

func (r *ruleset) close() {
	if r.fd >= 0 {
		unix.Close(r.fd)
		r.fd = -1
	}
}
