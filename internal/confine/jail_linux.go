package confine

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

// Enter confines the process, for good. keep are descriptors above 2 that it goes on to use;
// what it starts inherits none of them. The fault is [Refused], or [NotSupported] on a
// processor that there is no filter for; after one the process should end. The calling
// goroutine keeps its thread for ever: some of what is taken away is taken from that thread
// alone, which is the one to start programs.
func (j Jail) Enter(keep ...int) error {
	runtime.LockOSThread()
	if auditArch == 0 {
		return fault.New(NotSupported, "there is no system call filter for this kind of processor").WithHint("run it on amd64 or arm64")
	}
	if err := j.unless("descriptors", func() error { return closeInherited(keep) }); err != nil {
		return refused(err, "descriptors that were inherited cannot be closed")
	}
	if err := j.unless("memory", func() error { return hideMemory(noCore) }); err != nil {
		return refused(err, "memory dumps cannot be switched off")
	}
	if err := j.unless("capabilities", func() error { return dropCapabilities(true) }); err != nil {
		return refused(err, "capabilities cannot be dropped")
	}
	if err := j.unless("privileges", noNewPrivileges); err != nil {
		return noFilters(err)
	}
	if err := j.unless("landlock", j.restrict); err != nil {
		return refused(err, "access to files cannot be restricted")
	}
	if err := j.unless("filter", j.filter); err != nil {
		return noFilters(err)
	}
	return nil
}

// noCore keeps programs from leaving core files: with 0 the kernel would still give a dump to
// the program that the system may name for it, with 1 it gives none.
const noCore = 1

// unless builds a wall that is not to be left out.
func (j Jail) unless(wall string, build func() error) error {
	if j.skips(wall) {
		return nil
	}
	return build()
}

// restrict puts the rules in force.
func (j Jail) restrict() error {
	rules, err := j.rules()
	if err != nil {
		return err
	}
	if j.Alone {
		return rules.enforceHere()
	}
	return rules.enforce()
}

func (j Jail) filter() error {
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_TSYNC)
	if j.Alone {
		flags = 0
	}
	return setFilter(compile(jailCalls(j.Alone, j.NoSetID)), flags)
}

// What rules of a jail allow.
const (
	mayUse    = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayDevice = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	mayChange = fileABI9 &^ (unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)
)

// errNoLandlock: a jail without Landlock is none. (A worker of mooncite has a filter under
// which nothing is left to do with files; here everything is.)
var errNoLandlock = errors.New("the kernel has no Landlock")

// errOldLandlock: without namespaces nothing but Landlock keeps files outside from being
// emptied, which it knows since this version.
var errOldLandlock = errors.New("the kernel's Landlock cannot keep files from being truncated (ABI 3 can)")

// aloneABI is the first that confines where there are no namespaces.
const aloneABI = 3

func (j Jail) rules() (*ruleset, error) {
	abi, err := landlockABI()
	if err != nil {
		return nil, err
	}
	if abi == 0 {
		return nil, errNoLandlock
	}
	if j.Alone && abi < aloneABI {
		return nil, errOldLandlock
	}
	r := &ruleset{fd: -1, masks: masksOf(abi)}
	r.net = 0 // the network is a namespace's matter, or the filter's
	if !j.Alone {
		// Signals are a namespace's matter too. Each thread has a domain of its own, so that
		// with this scope the first process could not end what another of its threads started.
		r.scopes &^= unix.LANDLOCK_SCOPE_SIGNAL
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: r.files, Scoped: r.scopes}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Offsetof(attr.Quiet_access_fs), 0)
	if errno != 0 {
		return nil, fmt.Errorf("make a ruleset: %w", errno)
	}
	r.fd = int(fd)
	unix.CloseOnExec(r.fd)
	for _, group := range []struct {
		paths  []string
		access uint64
	}{{j.Run, mayUse}, {j.Write, mayChange}, {j.Devices, mayDevice}} {
		for _, path := range group.paths {
			if _, err := r.allow(path, group.access, true); err != nil && !passing(err) {
				r.close()
				return nil, fmt.Errorf("allow %s: %w", path, err)
			}
		}
	}
	return r, nil
}

// enforceHere puts the rules in force on the calling thread and what it starts.
func (r *ruleset) enforceHere() error {
	defer r.close()
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// LandlockABI is the version of Landlock that this kernel has; 0 is none.
func LandlockABI() int {
	abi, err := landlockABI()
	if err != nil {
		return 0
	}
	return abi
}

// ScopesABI is the first version with which programs of a [Jail] can neither signal those
// outside nor reach their abstract sockets.
const ScopesABI = 6

// Verify makes sure that [Jail.Enter] holds for the calling thread: by what the kernel says
// of it, and by trying what the filter and the rules must deny. A fault is [Refused].
func (j Jail) Verify() error {
	if err := verifyThread(); err != nil {
		return fault.Wrap(Refused, err, "the process is not confined")
	}
	tries := []try{
		{"socket: hypervisor", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"namespaces", raw(unix.SYS_UNSHARE)},
		{"ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 0x7fffffff)},
	}
	if j.NoSetID {
		tries = append(tries, try{"set-user-id bits", raw(unix.SYS_FCHMODAT, nowhere, 0, unix.S_ISUID)})
	}
	if j.Alone {
		tries = append(tries, try{"socket: local", socket(unix.AF_UNIX, unix.SOCK_STREAM)})
	}
	for _, x := range tries {
		switch errno := x.call(); errno {
		case unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT:
		default:
			return fault.New(Refused, "the confinement does not hold: %s was not denied", x.name)
		}
	}
	if err := j.verifyRules(); err != nil {
		return fault.Wrap(Refused, err, "the confinement does not hold: access to files is not restricted")
	}
	return nil
}

// verifyRules tries what only the rules deny: to read the root directory where they do not
// allow that, and else to make a device file of the one kind that everybody may make.
func (j Jail) verifyRules() error {
	if !slices.Contains(j.Run, "/") && !slices.Contains(j.Write, "/") {
		fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return denial(err)
	}
	for _, dir := range j.Write {
		if unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
			continue
		}
		name := filepath.Join(dir, ".confinement-"+strconv.Itoa(os.Getpid()))
		err := unix.Mknod(name, unix.S_IFCHR, 0)
		if err == nil {
			unix.Unlink(name)
		}
		return denial(err)
	}
	return errors.New("there is nothing to try it on")
}

// denial wants what Landlock answers.
func denial(err error) error {
	if errors.Is(err, unix.EACCES) {
		return nil
	}
	return fmt.Errorf("a try gave: %w", cmp.Or(err, errNotDenied))
}

var errNotDenied = errors.New("it was not denied")
