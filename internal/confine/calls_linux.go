//go:build linux && (amd64 || arm64)

package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// always allows calls whatever their arguments.
func always(numbers ...uint32) []call {
	list := make([]call, len(numbers))
	for i, n := range numbers {
		list[i] = call{number: n, action: retAllow}
	}
	return list
}

// only allows a call when a condition holds.
func only(number uint32, c condition) call {
	return call{number: number, cases: []branch{{conditions: []condition{c}, action: retAllow}}, action: retDenied}
}

// when allows a call for some values of one argument.
func when(number, arg uint32, values ...uint32) call {
	return only(number, condition{arg: arg, mask: ^uint32(0), values: values})
}

// without allows a call when none of the bits is set in one argument.
func without(number, arg, bits uint32) call {
	return only(number, condition{arg: arg, mask: bits, values: []uint32{0}})
}

// unknown answers calls as a kernel does that has never heard of them.
func unknown(numbers ...uint32) []call {
	list := make([]call, len(numbers))
	for i, n := range numbers {
		list[i] = call{number: n, action: retUnknown}
	}
	return list
}

// calls is what the Go runtime, reading and writing of files, and SQLite need. What is
// not here and why: everything that makes a socket or a process; everything that
// changes a file that is not open for writing (chmod, utimes, xattr, truncate by name,
// links), because Landlock does not look at most of it; directories, because the state
// is flat.
func calls(supervisor bool) table {
	t := table{
		otherwise: retDenied,
		calls: always(
			// memory and threads
			unix.SYS_BRK, unix.SYS_MUNMAP, unix.SYS_MADVISE,
			unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETTID,
			unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_GETRANDOM,
			// time and signals
			unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
			unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
			// who we are
			unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
			unix.SYS_UNAME, unix.SYS_GETRUSAGE, unix.SYS_CAPGET,
			// files
			unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CLOSE,
			unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64, unix.SYS_LSEEK,
			unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETDENTS64, unix.SYS_GETCWD,
			unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_FTRUNCATE, unix.SYS_FLOCK,
			unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
			// waiting
			unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_PIPE2, unix.SYS_PPOLL,
		),
	}
	// The runtime falls back to clone; io_uring could do everything that is denied here.
	t.calls = append(t.calls, unknown(unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)...)
	t.calls = append(t.calls, always(ofProcessor...)...)
	t.calls = append(t.calls,
		without(unix.SYS_MMAP, 2, unix.PROT_EXEC),
		without(unix.SYS_MPROTECT, 2, unix.PROT_EXEC),
		when(unix.SYS_FCNTL, 1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
			unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW),
		when(unix.SYS_IOCTL, 1, unix.TCGETS, unix.TIOCGWINSZ),
	)
	if supervisor {
		return t.withWorkers()
	}
	self := uint32(os.Getpid())
	t.calls = append(t.calls,
		only(unix.SYS_CLONE, condition{arg: 0, mask: unix.CLONE_THREAD, values: []uint32{unix.CLONE_THREAD}}),
		when(unix.SYS_TGKILL, 0, self),
		when(unix.SYS_KILL, 0, self),
		when(unix.SYS_PRCTL, 0, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_SECCOMP, unix.PR_GET_DUMPABLE, unix.PR_SET_VMA),
	)
	return t
}

// namespaces are the flags of clone that make one.
const namespaces = unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWNS

// withWorkers adds what is needed to start the program again, and what the new one needs
// before it confines itself further. Landlock says which program.
func (t table) withWorkers() table {
	t.calls = append(t.calls, always(
		unix.SYS_EXECVE, unix.SYS_DUP3, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_KILL, unix.SYS_TGKILL, unix.SYS_MEMFD_CREATE,
		unix.SYS_PRCTL, unix.SYS_CAPSET, unix.SYS_PRLIMIT64, unix.SYS_SECCOMP, unix.SYS_SET_TID_ADDRESS,
		unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
	)...)
	t.calls = append(t.calls, always(atStart...)...)
	t.calls = append(t.calls, without(unix.SYS_CLONE, 0, namespaces))
	return t
}
