package job

import (
	"os"
	"syscall"
	"time"
)

// interruptible makes reading a terminal end at its deadline: what set the terminal up may
// have left it so that a read blocks until somebody writes.
func interruptible(f *os.File) {
	if f.SetReadDeadline(time.Time{}) != nil {
		return // the runtime cannot wait for it in any other way
	}
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), true) })
	}
}
