package walls

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// number gives this process, in a user namespace that has no numbers yet, those of the server:
// the user keeps its numbers, and nobody else has any. The kernel lets a namespace do so once,
// for one user, who is the one that made it, and for one group after a command can have no
// other ones. (Were it done from outside, as package syscall offers, the server could start
// this process only by a copy of its own memory's tables.)
func (h *helper) number() error {
	if err := put("/proc/self/setgroups", "deny"); err != nil {
		return err
	}
	if err := put("/proc/self/uid_map", itself(h.User)); err != nil {
		return err
	}
	return put("/proc/self/gid_map", itself(h.Group))
}

func itself(id int) string {
	n := strconv.Itoa(id)
	return n + " " + n + " 1"
}

// put writes a file of the kernel, in one call, as it wants it.
func put(path, text string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(text))
	return err
}
