package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// creat is the old call, which newer processors do not have.
func creat(path string, mode uint64) string {
	return call(unix.SYS_CREAT, uint64(uintptr(unsafe.Pointer(text(path)))), mode)
}
