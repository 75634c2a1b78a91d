//go:build !linux

package safefile

import (
	"io/fs"
	"os"
)

// CreateLike answers NotSupported.
func (d *Dir) CreateLike(name string, data []byte, model *os.File) error { return notSupported() }

// CreateUnnamed answers NotSupported.
func (d *Dir) CreateUnnamed(data []byte, perm fs.FileMode, model *os.File) (*os.File, error) {
	return nil, notSupported()
}

// Name answers NotSupported.
func (d *Dir) Name(f *os.File, name string) error { return notSupported() }

// Lease gives none.
func Lease(f *os.File) (held, writers bool) { return false, false }

// Undisturbed knows of nobody.
func Undisturbed(f *os.File) bool { return true }

// EndLease does nothing.
func EndLease(f *os.File) {}

// AwaitWrite waits for nothing.
func AwaitWrite(f *os.File) {}

// Umask is the usual one here.
func Umask() fs.FileMode { return 0o022 }
