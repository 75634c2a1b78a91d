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
// permitted ones. With bounding, what a program that is run can gain is emptied too, on
// the calling thread alone, where this user can: it is for the thread that starts
// workers. (Without new privileges nothing could be gained anyhow.)
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
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				return err
			}
		}
	}
	if now == ([2]unix.CapUserData{}) {
		return nil // an ordinary user's: all threads began with the same ones
	}
	head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return everyThread(func() (uintptr, uintptr, syscall.Errno) {
		return syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0)
	})
}
