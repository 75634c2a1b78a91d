package safefile

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// staleTemp is the age after which a temporary file is taken for what a crashed
// process left behind; no write takes that long.
const staleTemp = time.Hour

// WriteFileAtomic replaces the file name, one component, directly in the root: data
// goes to a new file beside it (so it is never written through a link), is flushed
// to disk, and takes the name by rename; then the directory is flushed. perm is
// exact, whatever the umask. On an error the old content is still there. What
// crashed processes left is removed when it is older than an hour.
func (r *Root) WriteFileAtomic(name string, data []byte, perm fs.FileMode) error {
	if !plain(name) || name == "." || strings.Contains(name, "/") {
		return pathError("write", name, ErrName)
	}
	dir, err := open(r.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY) // r.fd is O_PATH and cannot be flushed
	if err != nil {
		return pathError("write", name, err)
	}
	defer unix.Close(dir)
	sweepTemps(dir, name)
	temp := tempPrefix(name) + token() + tempSuffix
	if err := writeNew(dir, temp, data, perm); err != nil {
		unix.Unlinkat(dir, temp, 0)
		return pathError("write", name, err)
	}
	if err := unix.Renameat(dir, temp, dir, name); err != nil {
		unix.Unlinkat(dir, temp, 0)
		return pathError("rename", name, err)
	}
	if err := again(func() error { return unix.Fsync(dir) }); err != nil {
		return pathError("sync", name, err)
	}
	return nil
}

// writeNew makes temp with exactly perm. The mode is set afterwards only where the umask
// took something away: a confined process may not change modes.
func writeNew(dir int, temp string, data []byte, perm fs.FileMode) error {
	fd, err := unix.Openat(dir, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), temp)
	defer f.Close()
	if _, err := f.Write(data); err != nil {
		return err
	}
	info, err := StatFile(f)
	if err == nil && info.Mode != uint32(perm.Perm()) {
		err = f.Chmod(perm)
	}
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Close()
}

const tempSuffix = ".tmp"

func tempPrefix(name string) string { return "." + name + "." }

func token() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// sweepTemps removes old temporary files of name. It is housekeeping: what cannot be
// removed stays and hinders nobody.
func sweepTemps(dir int, name string) {
	list, err := readEntries(dir)
	if err != nil {
		return
	}
	for _, e := range list {
		rest, ok := strings.CutPrefix(e.Name, tempPrefix(name))
		if !ok || len(rest) != 16+len(tempSuffix) || !strings.HasSuffix(rest, tempSuffix) {
			continue
		}
		var st unix.Stat_t
		if lstatat(dir, e.Name, &st) == nil && time.Since(time.Unix(0, st.Mtim.Nano())) > staleTemp {
			unix.Unlinkat(dir, e.Name, 0)
		}
	}
}
