package confine

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

// Self confines the calling process. The order is one in which each step still may do
// what it needs: descriptors, memory dumps, capabilities, no new privileges, Landlock,
// filter. keep are descriptors above 2 that were inherited on purpose.
//
// It wants a program without cgo, where the Go runtime can make a system call on every
// thread. The faults are [Refused] and [NotSupported]; after one the process may be
// half confined and should end. A supervisor's goroutine keeps its thread, from which
// [Supervise] starts workers.
func Self(p Policy, keep ...int) (State, error) {
	if auditArch == 0 {
		return State{}, fault.New(NotSupported, "there is no system call filter for this kind of processor").
			WithHint("run it on amd64 or arm64")
	}
	if err := closeInherited(keep); err != nil {
		return State{}, refused(err, "descriptors that were inherited cannot be closed").WithHint("look whether /proc is mounted")
	}
	if err := hideMemory(0); err != nil {
		return State{}, refused(err, "memory dumps cannot be switched off")
	}
	runtime.LockOSThread()
	if !p.Supervisor { // whose thread is the one that starts workers
		defer runtime.UnlockOSThread()
	}
	if err := dropCapabilities(p.Supervisor); err != nil {
		return State{}, refused(err, "capabilities cannot be dropped")
	}
	if err := noNewPrivileges(); err != nil {
		return State{}, noFilters(err)
	}
	s := State{Seccomp: true}
	rules, err := landlock(p, &s)
	if err != nil {
		return State{}, refused(err, "access to files cannot be restricted")
	}
	if err := rules.enforce(); err != nil {
		return State{}, refused(err, "access to files cannot be restricted")
	}
	if err := setFilter(compile(calls(p.Supervisor)), unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return State{}, noFilters(err)
	}
	return s, nil
}

func noFilters(err error) error {
	return refused(err, "this kernel does not let the program filter its own system calls (seccomp)").
		WithHint("use a kernel with CONFIG_SECCOMP_FILTER; in a container, allow the seccomp system call")
}

// noNewPrivileges sets the flag on every thread. A filter that is installed for all
// threads brings the flag of the thread that installs it; one that allows everything
// costs a tenth of a call on each thread by the runtime.
func noNewPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return setFilter([]unix.SockFilter{give(retAllow)}, unix.SECCOMP_FILTER_FLAG_TSYNC)
}

// errCgo says what [everyThread] cannot work with.
var errCgo = errors.New("the program was built with cgo")

func refused(err error, format string, args ...any) *fault.Error {
	f := fault.Wrap(Refused, err, format, args...).WithHint("run the command again with --verbose to see what the kernel answered")
	if errors.Is(err, errCgo) {
		f = fault.Wrap(Refused, err, "this build of the program cannot confine all of its threads").WithHint("build it with CGO_ENABLED=0, as make does")
	}
	return f
}

// everyThread gives the outcome of a system call that set makes on every thread there is
// by [syscall.AllThreadsSyscall]; threads that are made later inherit what it did.
//
// The runtime stops the world for such a call, and its monitor goes to sleep when it sees
// that. Woken up again it looks around every few microseconds, which costs a short command
// more CPU time than its whole confinement. A timer that is due by then keeps the monitor
// as calm as it was.
func everyThread(set func() (r1, r2 uintptr, errno syscall.Errno)) error {
	due := time.AfterFunc(soon, func() {})
	defer due.Stop()
	switch _, _, errno := set(); errno {
	case 0:
		return nil
	case unix.ENOTSUP:
		return errCgo
	default:
		return errno
	}
}

// soon is after the world stops, where nothing runs a timer, and before it starts again.
const soon = 30 * time.Microsecond

// closeInherited closes every descriptor above 2 that came from who started the
// program. The program's own are close-on-exec from their birth, and no such descriptor
// comes through an exec: what lacks the flag was inherited.
func closeInherited(keep []int) error {
	names, err := descriptors()
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue // gone already, or our own
		}
		if slices.Contains(keep, fd) {
			unix.CloseOnExec(fd)
			continue
		}
		unix.Close(fd)
	}
	return nil
}

// descriptors lists what is open, and the one it looks with: without package os, which
// would first try whether the poller takes it.
func descriptors() ([]string, error) {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	var names []string
	for buf := make([]byte, 4096); ; {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// hideMemory keeps what the process has read out of core files and out of reach of other
// processes of the same user. Both hold for the whole process; what it starts has the limit
// of core files alone, in bytes.
func hideMemory(core uint64) error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: core, Max: core}); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
