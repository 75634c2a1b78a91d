package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
)

// A try makes one system call. Its arguments are such that the call would fail in some
// other way, or do nothing, where it is not denied.
type try struct {
	name string
	call func() unix.Errno
}

func raw(trap uintptr, args ...uintptr) func() unix.Errno {
	var a [6]uintptr
	copy(a[:], args)
	return func() unix.Errno {
		_, _, errno := unix.RawSyscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5])
		return errno
	}
}

// socket asks for one and closes what it got.
func socket(family, kind uintptr) func() unix.Errno {
	return func() unix.Errno {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, 0)
		if errno == 0 {
			unix.Close(int(fd))
		}
		return errno
	}
}

const nowhere = ^uintptr(0) // no descriptor, as an int

// filtered are calls that the filter answers. The strangest is a socket family with a
// bit above the 32 that the kernel looks at: a filter that compares 64 takes it for
// another one.
func filtered() []try {
	stranger := uintptr(unix.Getppid()) // not us, and surely there
	var pair [2]int32
	high := uint64(1) << 32
	return []try{
		{"socket: internet", socket(unix.AF_INET, unix.SOCK_STREAM)},
		{"socket: internet, datagrams", socket(unix.AF_INET, unix.SOCK_DGRAM)},
		{"socket: internet 6", socket(unix.AF_INET6, unix.SOCK_STREAM)},
		{"socket: local", socket(unix.AF_UNIX, unix.SOCK_STREAM)},
		{"socket: netlink", socket(unix.AF_NETLINK, unix.SOCK_RAW)},
		{"socket: packets", socket(unix.AF_PACKET, unix.SOCK_RAW)},
		{"socket: hypervisor", socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{"socket: a high bit in its family", socket(uintptr(unix.AF_INET|high), unix.SOCK_STREAM)},
		{"socketpair", func() unix.Errno {
			_, _, errno := unix.RawSyscall6(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)
			return errno
		}},
		{"connect", raw(unix.SYS_CONNECT, nowhere)},
		{"sendto", raw(unix.SYS_SENDTO, nowhere)},
		{"io_uring", raw(unix.SYS_IO_URING_SETUP, 1)},
		{"execve", raw(unix.SYS_EXECVE)},
		{"execveat", raw(unix.SYS_EXECVEAT, nowhere)},
		// Without memory in common, signal handlers cannot be in common: nothing is forked.
		{"fork", raw(unix.SYS_CLONE, uintptr(unix.CLONE_SIGHAND|unix.SIGCHLD))},
		{"clone3", raw(unix.SYS_CLONE3)},
		{"executable memory", func() unix.Errno {
			at, _, errno := unix.RawSyscall6(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, nowhere, 0)
			if errno == 0 {
				unix.RawSyscall(unix.SYS_MUNMAP, at, 4096, 0)
			}
			return errno
		}},
		{"making memory executable", raw(unix.SYS_MPROTECT, 0, 0, unix.PROT_EXEC)},
		{"making memory executable by key", raw(unix.SYS_PKEY_MPROTECT, 0, 0, unix.PROT_EXEC, nowhere)},
		{"memory files", raw(unix.SYS_MEMFD_CREATE)},
		{"ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_CONT, 0x7fffffff)},
		{"reading another process", raw(unix.SYS_PROCESS_VM_READV, stranger)},
		{"descriptors of another process", raw(unix.SYS_PIDFD_OPEN, stranger, nowhere)},
		{"signals to another process", raw(unix.SYS_KILL, stranger, 0)},
		{"mount", raw(unix.SYS_MOUNT)},
		{"namespaces", raw(unix.SYS_UNSHARE)},
		{"entering namespaces", raw(unix.SYS_SETNS, nowhere)},
		{"another root directory", raw(unix.SYS_CHROOT)},
		{"bpf", raw(unix.SYS_BPF, nowhere)},
		{"performance events", raw(unix.SYS_PERF_EVENT_OPEN)},
		{"keyrings", raw(unix.SYS_KEYCTL, nowhere)},
		{"page faults", raw(unix.SYS_USERFAULTFD, nowhere)},
		{"files by handle", raw(unix.SYS_OPEN_BY_HANDLE_AT, nowhere)},
		{"chmod", raw(unix.SYS_FCHMODAT, nowhere)},
		{"chmod of an open file", raw(unix.SYS_FCHMOD, nowhere)},
		{"chown", raw(unix.SYS_FCHOWNAT, nowhere)},
		{"times of files", raw(unix.SYS_UTIMENSAT, nowhere)},
		{"attributes of files", raw(unix.SYS_SETXATTR)},
		{"truncate", raw(unix.SYS_TRUNCATE)},
		{"links", raw(unix.SYS_LINKAT, nowhere)},
		{"symbolic links", raw(unix.SYS_SYMLINKAT)},
		{"device files", raw(unix.SYS_MKNODAT, nowhere)},
		{"directories", raw(unix.SYS_MKDIRAT, nowhere)},
		{"watching files", raw(unix.SYS_INOTIFY_INIT1)},
		{"terminal input", raw(unix.SYS_IOCTL, nowhere, unix.TIOCSTI)},
	}
}

// Try tries, on the calling thread, what a confined process that is no supervisor must
// not be able to do. It changes nothing where it can: a file that could be made is
// removed again.
func Try(t Trial) []Attempt {
	var list []Attempt
	for _, x := range filtered() {
		errno := x.call()
		a := Attempt{Name: x.name, Denied: errno == unix.EPERM || errno == unix.ENOSYS}
		if errno != 0 {
			a.Err = errno.Error()
		}
		list = append(list, a)
	}
	for _, path := range t.Outside {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		list = append(list, attempt("reading a file outside", err))
	}
	for _, dir := range t.Sources {
		// It is a name that nobody has, and the file is not opened when somebody has it.
		name := filepath.Join(dir, ".confinement-"+strconv.Itoa(os.Getpid()))
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			unix.Unlink(name)
		}
		list = append(list, attempt("making a file in a source directory", err))
	}
	return list
}

func attempt(name string, err error) Attempt {
	if err == nil {
		return Attempt{Name: name}
	}
	return Attempt{Name: name, Denied: true, Err: err.Error()}
}

// Verify makes sure that what [Self] said holds: by what the kernel says of the calling
// thread (it set every other one in the same call, or failed) and by [Try]. Without
// Landlock files are not tried. A fault is [Refused].
func Verify(s State, t Trial) error {
	if s.LandlockABI == 0 {
		t = Trial{}
	}
	if err := verifyThread(); err != nil {
		return fault.Wrap(Refused, err, "the program is not confined").WithHint("%s", report)
	}
	for _, a := range Try(t) {
		if !a.Denied {
			return fault.Wrap(Refused, errors.New(a.Err), "the confinement does not hold: %s was not denied", a.Name).WithHint("%s", report)
		}
	}
	return nil
}

const report = "no history was opened; report it with the version of the kernel (uname -a) and of the program"

// verifyThread asks the kernel about the calling thread.
func verifyThread() error {
	for _, want := range []struct {
		name   string
		option int
		value  int
	}{
		{"no new privileges", unix.PR_GET_NO_NEW_PRIVS, 1},
		{"the filter", unix.PR_GET_SECCOMP, unix.SECCOMP_MODE_FILTER},
		{"memory dumps", unix.PR_GET_DUMPABLE, 0},
	} {
		if got, err := unix.PrctlRetInt(want.option, 0, 0, 0, 0); err != nil || got != want.value {
			return fmt.Errorf("%s: %d, %v", want.name, got, err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&head, &now[0]); err != nil || now != ([2]unix.CapUserData{}) {
		return fmt.Errorf("capabilities: %+v, %v", now, err)
	}
	return nil
}
