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

// jailOfProcessor are more calls that a jail denies.
var jailOfProcessor = []uint32{
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
}

// jailModesOfProcessor are calls with a mode that newer processors do not have.
var jailModesOfProcessor = []call{
	unless(unix.SYS_CHMOD, hasBits(1, setID)), unless(unix.SYS_CREAT, hasBits(1, setID)), unless(unix.SYS_MKNOD, hasBits(1, setID)),
	unless(unix.SYS_MKDIR, hasBits(1, setID)), unless(unix.SYS_OPEN, hasBits(1, makes), hasBits(2, setID)),
}
