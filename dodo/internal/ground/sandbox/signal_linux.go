package sandbox

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is SIGKILL and the like.
func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
