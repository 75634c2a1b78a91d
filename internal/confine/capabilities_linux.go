package confine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lastCapability is above every capability a kernel may know; asking for one it does not
// know ends the walk.
const lastCapability = 63

// dropCapabilities empties the sets of every thread. Ambient capabilities go with the
// permitted ones. bounding says whether the process may still run a program: then the set
// of what a program can gain is emptied too, where this user can. It takes a call for
// each capability on each thread, 2 ms in all, and a process that can run nothing is
// spared it.
func dropCapabilities(bounding bool) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var now [2]unix.CapUserData
	if err := unix.Capget(&head, &now[0]); err != nil {
		return err
	}
	if bounding && now[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for c := uintptr(0); c <= lastCapability; c++ {
			held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
			if err != nil {
				break
			}
			if held == 0 {
				continue
			}
			if err := everyThread(syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0)); err != nil {
				return err
			}
		}
	}
	if now == ([2]unix.CapUserData{}) {
		return nil // an ordinary user's: all threads began with the same ones
	}
	head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return everyThread(syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0))
}
