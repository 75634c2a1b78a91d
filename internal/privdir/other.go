//go:build !linux

package privdir

import (
	"context"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Held is a lock this process holds. There is none on this system.
type Held struct{}

func notSupported() error {
	return fault.New(safefile.NotSupported, "private directories are judged only on Linux so far").
		WithHint("run the program on Linux")
}

// Create answers NOT_SUPPORTED.
func Create(path, what string, marks ...string) (*safefile.Root, error) { return nil, notSupported() }

// Open answers NOT_SUPPORTED.
func Open(path, what string, marks ...string) (*safefile.Root, error) { return nil, notSupported() }

// OpenConfig answers NOT_SUPPORTED.
func OpenConfig(path, what string) (*safefile.Root, error) { return nil, notSupported() }

// CheckFile answers NOT_SUPPORTED.
func CheckFile(dir *safefile.Root, name, what string) error { return notSupported() }

// ReadConfig answers NOT_SUPPORTED.
func ReadConfig(dir *safefile.Root, name, what string, max int64) ([]byte, error) {
	return nil, notSupported()
}

// TryLock answers NOT_SUPPORTED.
func TryLock(path string) (*Held, error) { return nil, notSupported() }

// TryLockShared answers NOT_SUPPORTED.
func TryLockShared(path string) (*Held, error) { return nil, notSupported() }

// Lock answers NOT_SUPPORTED.
func Lock(ctx context.Context, path string) (*Held, error) { return nil, notSupported() }

// Unlock does nothing.
func (h *Held) Unlock() error { return nil }
