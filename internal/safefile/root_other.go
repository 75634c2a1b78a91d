//go:build !linux

package safefile

import (
	"io/fs"
	"os"

	"localmcp/internal/fault"
)

// Root is an open directory. There is none on this system.
type Root struct{}

func notSupported() error {
	return fault.New(NotSupported, "files are opened by descriptor only on Linux so far").
		WithHint("run the program on Linux")
}

// OpenRoot answers NotSupported.
func OpenRoot(path string, links Links) (*Root, error) { return nil, notSupported() }

// Path returns "".
func (r *Root) Path() string { return "" }

// InPlace answers NotSupported.
func (r *Root) InPlace() (bool, error) { return false, notSupported() }

// Close does nothing.
func (r *Root) Close() error { return nil }

// Sub answers NotSupported.
func (r *Root) Sub(rel string) (*Root, error) { return nil, notSupported() }

// Open answers NotSupported.
func (r *Root) Open(rel string) (*os.File, Identity, error) {
	return nil, Identity{}, notSupported()
}

// Stat answers NotSupported.
func (r *Root) Stat(rel string) (Info, error) { return Info{}, notSupported() }

// Born answers NotSupported.
func (r *Root) Born() (ns int64, known bool, err error) { return 0, false, notSupported() }

// Peek answers NotSupported.
func (r *Root) Peek(rel string) (Info, error) { return Info{}, notSupported() }

// StatFile answers NotSupported.
func StatFile(f *os.File) (Info, error) { return Info{}, notSupported() }

// ReadDir answers NotSupported.
func (r *Root) ReadDir(rel string) ([]Entry, Identity, error) {
	return nil, Identity{}, notSupported()
}

// WriteFileAtomic answers NotSupported.
func (r *Root) WriteFileAtomic(name string, data []byte, perm fs.FileMode) error {
	return notSupported()
}

// Move answers NotSupported.
func (r *Root) Move(from, to string) error { return notSupported() }

// Exchange answers NotSupported.
func (r *Root) Exchange(a, b string) error { return notSupported() }
