package git

import (
	"os"
	"syscall"
	"time"
)

// hold takes the system's lock of an open file, if nobody has it. It ends with the process.
func hold(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// stamp gives an open file the time of a content that is older: git compares it with those of
// the files to know which of them may have changed unseen. It is rounded down, which only
// makes git look once more.
func stamp(f *os.File, ns int64) error {
	ns -= ns % int64(time.Microsecond)
	t := syscall.NsecToTimeval(ns)
	return syscall.Futimes(int(f.Fd()), []syscall.Timeval{t, t})
}
