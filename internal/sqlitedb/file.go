package sqlitedb

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// Places in the header of a database file (SQLite file format, section 1.3).
const (
	headerSize    = 100
	magic         = "SQLite format 3\x00"
	atPageSize    = 16
	atPageCount   = 28
	atUserVersion = 60
	atApplication = 68
)

// prepare makes the file when it is missing and judges it without SQLite, which
// might already replay a foreign journal.
func (d *DB) prepare(path string) error {
	if !filepath.IsAbs(path) {
		return fault.New(Unusable, "the path of the database is not absolute").WithHint("give a path that begins with /")
	}
	dir, err := safefile.OpenRoot(filepath.Dir(path), safefile.RefuseLinks)
	if err != nil {
		if errors.Is(err, safefile.NotSupported) {
			return err
		}
		return Failed(err, "the directory of the database cannot be opened")
	}
	defer dir.Close()
	base := filepath.Base(path)
	if !d.o.Existing {
		err := create(path)
		if err != nil && (d.o.Bulk || !errors.Is(err, fs.ErrExist)) {
			return Failed(err, "the database cannot be made")
		}
	}
	if err := privdir.CheckFile(dir, base, "the database"); err != nil {
		return err
	}
	for _, side := range []string{"-wal", "-shm", "-journal"} {
		err := privdir.CheckFile(dir, base+side, "a file beside the database")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return d.judgeHeader(dir, base)
}

// judgeHeader refuses a file that is not ours. The application id is in the file
// itself, never only in the log, because it is written before the log is switched on.
func (d *DB) judgeHeader(dir *safefile.Root, base string) error {
	f, id, err := dir.Open(base)
	if err != nil {
		return Failed(err, "the database cannot be opened")
	}
	defer f.Close()
	if id.Size == 0 {
		return nil
	}
	journal, err := hasContent(dir, base+"-journal")
	if err != nil {
		return err
	}
	log, err := hasContent(dir, base+"-wal")
	if err != nil {
		return err
	}
	var h [headerSize]byte
	_, err = io.ReadFull(f, h[:])
	switch short := errors.Is(err, io.ErrUnexpectedEOF); {
	case err != nil && !short:
		return Failed(err, "the database cannot be read")
	case (short || string(h[:len(magic)]) != magic) && journal:
		return nil // a crash while the file was made: SQLite rolls it back
	case short || string(h[:len(magic)]) != magic:
		return d.damaged(err)
	}
	if binary.BigEndian.Uint32(h[atApplication:]) != d.o.ApplicationID {
		return d.foreign()
	}
	if v := binary.BigEndian.Uint32(h[atUserVersion:]); v > uint32(len(d.o.Migrations)) {
		return d.newer(int(v))
	}
	pageSize := int64(binary.BigEndian.Uint16(h[atPageSize:]))
	if pageSize == 1 {
		pageSize = 65536
	}
	if pages := int64(binary.BigEndian.Uint32(h[atPageCount:])); !journal && !log && pages*pageSize > id.Size {
		return d.damaged(errors.New("the file is shorter than its header says"))
	}
	return nil
}

// hasContent reports whether a file is there and not empty.
func hasContent(dir *safefile.Root, name string) (bool, error) {
	st, err := dir.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, Failed(err, "a file beside the database cannot be looked at")
	}
	return st.Size > 0, nil
}

// create makes an empty file that is the user's alone; SQLite would let others read it.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// flush brings a file to the disk.
func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return Failed(err, "the database cannot be brought to the disk")
	}
	return nil
}
