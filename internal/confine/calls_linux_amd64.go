package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// ofProcessor are calls that newer processors do not have any more; the C library inside
// SQLite and the Go library use them here.
var ofProcessor = []uint32{
	unix.SYS_OPEN, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_ACCESS, unix.SYS_READLINK,
	unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_EPOLL_WAIT, unix.SYS_POLL, unix.SYS_TIME,
}

// atStart is what the runtime calls before main.
var atStart = []uint32{unix.SYS_ARCH_PRCTL}
