//go:build linux && (amd64 || arm64)

package confine

import "golang.org/x/sys/unix"

const (
	retNoFamily = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)

	setID    = unix.S_ISUID | unix.S_ISGID
	kindMask = 0xf // of a socket's type, without its flags

	// makes are the flags of open with which its mode counts: that for files without a name
	// is O_TMPFILE without O_DIRECTORY.
	makes = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)

// protocols of the internet that a socket may have: for others the kernel would load modules
// that nobody uses, and one of them is ping.
var protocols = []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_MPTCP}

// is is a condition on the value of an argument, set one on its bits.
func is(arg uint32, values ...uint32) condition {
	return condition{arg: arg, mask: ^uint32(0), values: values}
}

func isNot(arg uint32, values ...uint32) condition {
	return condition{arg: arg, mask: ^uint32(0), values: values, not: true}
}

func hasBits(arg, bits uint32) condition {
	return condition{arg: arg, mask: bits, values: []uint32{0}, not: true}
}

// denied refuses calls whatever their arguments.
func denied(numbers ...uint32) []call {
	list := make([]call, len(numbers))
	for i, n := range numbers {
		list[i] = call{number: n, action: retDenied}
	}
	return list
}

// unless allows a call but where all the conditions hold.
func unless(number uint32, conditions ...condition) call {
	return call{number: number, cases: []branch{{conditions: conditions, action: retDenied}}, action: retAllow}
}

// jailCalls is what ordinary programs must not call: everything else is allowed. alone and
// noSetID are [Jail]'s.
func jailCalls(alone, noSetID bool) table {
	t := table{otherwise: retAllow, calls: denied(
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		// keyrings belong to the user, not to a namespace
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		// the kernel itself
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
		unix.SYS_VHANGUP, unix.SYS_FANOTIFY_INIT,
		// namespaces and mounts
		unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		// files past their names
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	)}
	t.calls = append(t.calls, denied(jailOfProcessor...)...)
	// The C library falls back to clone, whose flags can be seen; io_uring could do everything.
	t.calls = append(t.calls, unknown(unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER)...)
	t.calls = append(t.calls,
		unless(unix.SYS_CLONE, hasBits(0, namespaces)),
		// A terminal's input and selection, the console's tricks, and line disciplines.
		unless(unix.SYS_IOCTL, is(1, unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD, unix.TIOCCONS)),
	)
	local := call{number: unix.SYS_SOCKETPAIR, cases: []branch{{conditions: []condition{is(0, unix.AF_UNIX)}, action: retAllow}}, action: retNoFamily}
	t.calls = append(t.calls, local)
	if alone {
		t.calls = append(t.calls, denied(unix.SYS_SOCKET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL,
			unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)...)
		t.calls = append(t.calls,
			unless(unix.SYS_PRLIMIT64, isNot(0, 0)),
			call{number: unix.SYS_SETPRIORITY, cases: []branch{{conditions: []condition{is(0, unix.PRIO_PROCESS), is(1, 0)}, action: retAllow}}, action: retDenied},
			call{number: unix.SYS_IOPRIO_SET, cases: []branch{{conditions: []condition{is(0, 1), is(1, 0)}, action: retAllow}}, action: retDenied},
			unless(unix.SYS_SCHED_SETAFFINITY, isNot(0, 0)), unless(unix.SYS_SCHED_SETPARAM, isNot(0, 0)),
			unless(unix.SYS_SCHED_SETSCHEDULER, isNot(0, 0)), unless(unix.SYS_SCHED_SETATTR, isNot(0, 0)),
		)
	} else {
		t.calls = append(t.calls, call{number: unix.SYS_SOCKET, action: retNoFamily, cases: []branch{
			{[]condition{is(0, unix.AF_UNIX)}, retAllow},
			{[]condition{is(0, unix.AF_INET, unix.AF_INET6), {arg: 1, mask: kindMask, values: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}}, is(2, protocols...)}, retAllow},
			{[]condition{is(0, unix.AF_INET, unix.AF_INET6)}, retDenied},
			{[]condition{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)}, retAllow},
		}})
	}
	if noSetID {
		t.calls = append(t.calls, jailModes()...)
	}
	return t
}

// jailModes refuse modes with set-id bits. A mode counts only where a file may be made.
func jailModes() []call {
	list := []call{
		unless(unix.SYS_FCHMOD, hasBits(1, setID)), unless(unix.SYS_FCHMODAT, hasBits(2, setID)), unless(unix.SYS_FCHMODAT2, hasBits(2, setID)),
		unless(unix.SYS_MKNODAT, hasBits(2, setID)), unless(unix.SYS_MKDIRAT, hasBits(2, setID)),
		unless(unix.SYS_OPENAT, hasBits(2, makes), hasBits(3, setID)),
	}
	list = append(list, jailModesOfProcessor...)
	// Its mode is in memory, where a filter sees nothing; programs fall back.
	return append(list, unknown(unix.SYS_OPENAT2)...)
}
