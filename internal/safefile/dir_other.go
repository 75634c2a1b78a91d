//go:build !linux

package safefile

import (
	"io/fs"
	"os"
)

// Dir is a directory open for listing and changing. There is none on this system.
type Dir struct{}

// OpenDir answers NotSupported.
func (r *Root) OpenDir(rel string) (*Dir, error) { return nil, notSupported() }

// Close does nothing.
func (d *Dir) Close() error { return nil }

// Sub answers NotSupported.
func (d *Dir) Sub(name string) (*Dir, error) { return nil, notSupported() }

// Self answers NotSupported.
func (d *Dir) Self() (Info, error) { return Info{}, notSupported() }

// Searchable answers NotSupported.
func (d *Dir) Searchable() error { return notSupported() }

// Stat answers NotSupported.
func (d *Dir) Stat(name string) (Info, error) { return Info{}, notSupported() }

// KernelMade answers NotSupported.
func (d *Dir) KernelMade() (bool, error) { return false, notSupported() }

// KernelMade answers NotSupported.
func KernelMade(f *os.File) (bool, error) { return false, notSupported() }

// Entries answers NotSupported.
func (d *Dir) Entries() ([]Entry, error) { return nil, notSupported() }

// Open answers NotSupported.
func (d *Dir) Open(name string) (*os.File, Info, error) { return nil, Info{}, notSupported() }

// Load answers NotSupported.
func (d *Dir) Load(name string, buf []byte, max int64) ([]byte, Info, bool, error) {
	return nil, Info{}, false, notSupported()
}

// Create answers NotSupported.
func (d *Dir) Create(name string, data []byte, perm fs.FileMode) error { return notSupported() }

// Mkdir answers NotSupported.
func (d *Dir) Mkdir(name string, perm fs.FileMode) error { return notSupported() }

// Move answers NotSupported.
func (d *Dir) Move(name string, to *Dir, newName string) error { return notSupported() }

// Exchange answers NotSupported.
func (d *Dir) Exchange(name string, to *Dir, other string) error { return notSupported() }

// Link answers NotSupported.
func (d *Dir) Link(name string, to *Dir, newName string) error { return notSupported() }

// Remove answers NotSupported.
func (d *Dir) Remove(name string) error { return notSupported() }

// RemoveDir answers NotSupported.
func (d *Dir) RemoveDir(name string) error { return notSupported() }

// Sync answers NotSupported.
func (d *Dir) Sync() error { return notSupported() }
