package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// ofProcessor are calls that have another name here.
var ofProcessor = []uint32{unix.SYS_FSTATAT}

// atStart is what the runtime calls before main.
var atStart []uint32

// jailOfProcessor are more calls that a jail denies.
var jailOfProcessor = []uint32{unix.SYS_KEXEC_FILE_LOAD}

// jailModesOfProcessor are calls with a mode that other processors have besides.
var jailModesOfProcessor []call
