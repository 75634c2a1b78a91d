package owner

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A process is told from a later one of the same number by when it began.
type process struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // ticks since the machine began
}

// self is this process.
func self() (process, error) {
	p, _, err := look(os.Getpid())
	return p, err
}

// look reads what /proc says of a process and who its parent is.
func look(pid int) (p process, parent int, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, 0, err
	}
	// The name stands in parentheses and may contain anything, also parentheses.
	end := strings.LastIndexByte(string(data), ')')
	fields := strings.Fields(string(data[end+1:]))
	const atParent, atStarted = 1, 19 // state is 0
	if end < 0 || len(fields) <= atStarted {
		return p, 0, errors.New("the process table cannot be read")
	}
	p.PID = pid
	if parent, err = strconv.Atoi(fields[atParent]); err == nil {
		p.Started, err = strconv.ParseUint(fields[atStarted], 10, 64)
	}
	return p, parent, err
}

// maxAncestors bounds the way up.
const maxAncestors = 1000

// descends reports whether a process has one of others above it. What cannot be found out is
// an error.
func descends(pid int, from func(process) bool) (bool, error) {
	_, at, err := look(pid)
	for range maxAncestors {
		if err != nil {
			return false, err
		}
		if at <= 1 {
			return false, nil
		}
		var p process
		if p, at, err = look(at); err == nil && from(p) {
			return true, nil
		}
	}
	return false, errors.New("the process has too many ancestors")
}

// peerOf tells whose process is at the other end.
func peerOf(c *net.UnixConn) (pid int, uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *syscall.Ucred
	if e := raw.Control(func(fd uintptr) {
		cred, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); e != nil || err != nil {
		return 0, 0, errors.Join(e, err)
	}
	return int(cred.Pid), cred.Uid, nil
}
