//go:build !linux

package safefile

import (
	"io/fs"
	"os"
)

// CreateLike answers NotSupported.
func (d *Dir) CreateLike(name string, data []byte, model *os.File) error { return notSupported() }

// Lease gives none.
func Lease(f *os.File) (held, writers bool) { return false, false }

// Undisturbed knows of nobody.
func Undisturbed(f *os.File) bool { return true }

// EndLease does nothing.
func EndLease(f *os.File) {}

// Umask is the usual one here.
func Umask() fs.FileMode { return 0o022 }
