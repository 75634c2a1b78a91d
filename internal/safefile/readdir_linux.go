package safefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadDir returns the names in the directory rel ("." for the root), sorted by
// bytes, and the identity the directory had before the first name was read. An
// entry that vanishes while its type is asked for is left out.
func (r *Root) ReadDir(rel string) ([]Entry, Identity, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := r.resolve(rel, flags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		fd, err = r.resolve(rel, flags)
	}
	if err != nil {
		return nil, Identity{}, pathError("readdir", rel, plainDirError(err))
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return nil, Identity{}, pathError("readdir", rel, err)
	}
	list, err := readEntries(fd)
	if err != nil {
		return nil, Identity{}, pathError("readdir", rel, err)
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, identity(&st), nil
}

func readEntries(fd int) ([]Entry, error) {
	var list []Entry
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return list, nil
		}
		for rest := buf[:n]; len(rest) > 0; {
			var name string
			var kind byte
			name, kind, rest = nextEntry(rest)
			if name == "." || name == ".." {
				continue
			}
			t, known := entryType(kind)
			if !known {
				var st unix.Stat_t
				switch err := lstatat(fd, name, &st); {
				case errors.Is(err, fs.ErrNotExist):
					continue
				case err != nil:
					return nil, err
				}
				t = typeOf(st.Mode)
			}
			list = append(list, Entry{Name: name, Type: t})
		}
	}
}

// nextEntry takes one struct linux_dirent64 from b: inode (8 bytes), offset (8),
// length of the record (2), type (1), name ending in NUL.
func nextEntry(b []byte) (name string, kind byte, rest []byte) {
	const head = 19
	length := int(binary.NativeEndian.Uint16(b[16:18]))
	raw := b[head:length]
	if i := bytes.IndexByte(raw, 0); i >= 0 {
		raw = raw[:i]
	}
	return string(raw), b[18], b[length:]
}

// entryType gives the type a file system wrote into the directory; some write none.
func entryType(kind byte) (t Type, known bool) {
	switch kind {
	case unix.DT_REG:
		return Regular, true
	case unix.DT_DIR:
		return Directory, true
	case unix.DT_LNK:
		return Link, true
	case unix.DT_FIFO, unix.DT_SOCK, unix.DT_CHR, unix.DT_BLK:
		return Other, true
	}
	return Other, false
}
