package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

// Enter confines the process, for good. keep are descriptors above 2 that it goes on to use;
// what it starts inherits none of them. The fault is [Refused], or [NotSupported] on a
// processor that there is no filter for; after one the process should end.
func (j Jail) Enter(keep ...int) error {
	if auditArch == 0 {
		return fault.New(NotSupported, "there is no system call filter for this kind of processor").WithHint("run it on amd64 or arm64")
	}
	if err := closeInherited(keep); err != nil {
		return refused(err, "descriptors that were inherited cannot be closed")
	}
	if err := hideMemory(); err != nil {
		return refused(err, "memory dumps cannot be switched off")
	}
	if err := dropCapabilities(true); err != nil {
		return refused(err, "capabilities cannot be dropped")
	}
	if err := noNewPrivileges(); err != nil {
		return noFilters(err)
	}
	rules, err := j.rules()
	if err != nil {
		return refused(err, "access to files cannot be restricted")
	}
	filter := compile(jailCalls(j.Alone, j.NoSetID))
	if j.Alone {
		if err := rules.enforceHere(); err != nil {
			return refused(err, "access to files cannot be restricted")
		}
		if err := setFilter(filter, 0); err != nil {
			return noFilters(err)
		}
		return nil
	}
	if err := rules.enforce(); err != nil {
		return refused(err, "access to files cannot be restricted")
	}
	if err := setFilter(filter, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return noFilters(err)
	}
	return nil
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

func (j Jail) rules() (*ruleset, error) {
	abi, err := landlockABI()
	if err != nil {
		return nil, err
	}
	if abi == 0 {
		return nil, errNoLandlock
	}
	r := &ruleset{fd: -1, masks: masksOf(abi)}
	r.net = 0 // the network is a namespace's matter, or the filter's
	if !j.Alone {
		// Each thread gets a domain of its own, and a signal to a process that another thread
		// started would be one to a stranger. Strangers are in other namespaces here.
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

// VerifyJail makes sure that [Jail.Enter] holds for the calling thread: by what the kernel
// says of it, and by trying what the filter must deny. A fault is [Refused].
func VerifyJail() error {
	if err := verifyThread(); err != nil {
		return fault.Wrap(Refused, err, "the process is not confined")
	}
	for _, x := range []try{
		{"socket: hypervisor", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"namespaces", raw(unix.SYS_UNSHARE)},
		{"ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 0x7fffffff)},
	} {
		switch errno := x.call(); errno {
		case unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT:
		default:
			return fault.New(Refused, "the confinement does not hold: %s was not denied", x.name)
		}
	}
	return nil
}
