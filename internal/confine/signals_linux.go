package confine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	mostSignals = 64
	// ownSignal is the one by which Go makes a system call on every thread; it takes no notice
	// of one that it did not send.
	ownSignal = 33
)

// DefaultSignals takes the handlers of Go away: every signal has its default effect again, but
// for those that the scheduler sends itself, whose handlers take no notice of others. For the
// first process of a namespace that is none at all, whoever inside sends it, while a fault of
// its own still ends it. The runtime does not learn of it, so that nothing may ask for signals
// afterwards.
func DefaultSignals() error {
	var action [4]uintptr // the default, without flags and mask
	for s := unix.Signal(1); s <= mostSignals; s++ {
		switch s {
		case unix.SIGKILL, unix.SIGSTOP, unix.SIGURG, ownSignal:
			continue
		}
		if _, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, mostSignals/8, 0, 0); errno != 0 {
			return fmt.Errorf("signal %d: %w", s, errno)
		}
	}
	return nil
}
