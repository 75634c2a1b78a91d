// Command oldkernel runs a program under a kernel that seems older than it is:
//
//	oldkernel PROFILE PROGRAM ARGS...
//
// PROFILE is "landlock=N" (the kernel says that it has Landlock ABI N), "no-landlock",
// "container" (a filter forbids Landlock), "no-seccomp", "no-userns" (no user namespaces for anybody), or a kernel that says yes and does nothing: "empty-landlock",
// "empty-seccomp".
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	runtime.LockOSThread()
	check(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	number, action, flags := uint32(unix.SYS_LANDLOCK_CREATE_RULESET), unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS), uintptr(0)
	abi := 0
	switch profile := os.Args[1]; {
	case profile == "no-seccomp":
		number = unix.SYS_SECCOMP
	case profile == "container":
		action = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	case profile == "empty-seccomp":
		number, action = unix.SYS_SECCOMP, unix.SECCOMP_RET_ERRNO
	case profile == "empty-landlock":
		number, action = unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SECCOMP_RET_ERRNO
	case strings.HasPrefix(profile, "landlock="):
		var err error
		abi, err = strconv.Atoi(strings.TrimPrefix(profile, "landlock="))
		check(err)
		action, flags = unix.SECCOMP_RET_USER_NOTIF, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: action},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if os.Args[1] == "no-userns" {
		filter = noUserNamespaces()
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		check(errno)
	}
	if flags != 0 {
		go answer(int(listener), abi) // on a thread that has no filter
	}
	pid, err := syscall.ForkExec(os.Args[2], os.Args[2:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	})
	check(err)
	var ws unix.WaitStatus
	for {
		if _, err = unix.Wait4(pid, &ws, 0, nil); err != unix.EINTR {
			break
		}
	}
	check(err)
	if ws.Signaled() {
		os.Exit(128 + int(ws.Signal()))
	}
	os.Exit(ws.ExitStatus())
}

// noUserNamespaces is what a system does that keeps them for its own programs.
func noUserNamespaces() (f []unix.SockFilter) {
	f = append(f, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS})
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		f = append(f,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 4},
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the flags
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: unix.CLONE_NEWUSER, Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		)
	}
	return append(f,
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jf: 1},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oldkernel:", err)
		os.Exit(125)
	}
}

// The kernel's struct seccomp_notif and seccomp_notif_resp.
type notif struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// answer says the version of Landlock that is asked for, and lets all else through.
func answer(listener, abi int) {
	for {
		var n notif
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			if errno == unix.EINTR || errno == unix.ENOENT {
				continue
			}
			return
		}
		r := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if uint32(n.args[2]) == unix.LANDLOCK_CREATE_RULESET_VERSION {
			r.flags, r.val = 0, int64(abi)
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	}
}
