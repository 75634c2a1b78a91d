package safefile

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Move gives an entry directly in the root another name there, which nothing may have
// yet: then the error is fs.ErrExist. The change is flushed to disk.
func (r *Root) Move(from, to string) error { return r.rename(from, to, unix.RENAME_NOREPLACE) }

// Exchange swaps the names of two entries directly in the root in one step: at no moment
// does either name lead nowhere. A file system that cannot do it says so, and nothing has
// changed. The change is flushed to disk.
func (r *Root) Exchange(a, b string) error { return r.rename(a, b, unix.RENAME_EXCHANGE) }

func (r *Root) rename(from, to string, flags uint) error {
	for _, name := range []string{from, to} {
		if !plain(name) || name == "." || strings.Contains(name, "/") {
			return pathError("rename", name, ErrName)
		}
	}
	dir, err := open(r.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY) // r.fd is O_PATH and cannot be flushed
	if err != nil {
		return pathError("rename", from, err)
	}
	defer unix.Close(dir)
	if err := unix.Renameat2(dir, from, dir, to, flags); err != nil {
		return pathError("rename", from, err)
	}
	if err := again(func() error { return unix.Fsync(dir) }); err != nil {
		return pathError("sync", to, err)
	}
	return nil
}
