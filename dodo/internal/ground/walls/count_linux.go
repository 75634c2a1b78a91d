package walls

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mostProcesses bounds the processes and threads of a command, root's too, which no limit of
// the user counts. (Numbers of processes end there.)
const mostProcesses = 4096

// countsProcesses reports whether the kernel keeps the highest number of a process for each
// namespace, which it does since 6.14. Before, there is one for the whole machine, which is
// not ours to change.
func countsProcesses() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(strings.TrimRightFunc(parts[1], func(r rune) bool { return r < '0' || r > '9' }))
	return err1 == nil && err2 == nil && (major > 6 || major == 6 && minor >= 14)
}

// countProcesses sets that number, by a proc file system that can still be written.
func countProcesses(proc string) error {
	return put(proc+"/sys/kernel/pid_max", strconv.Itoa(mostProcesses))
}
