package confine

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// ofProcessor are calls that have another name here.
var ofProcessor = []uint32{unix.SYS_FSTATAT}

// atStart is what the runtime calls before main.
var atStart []uint32
