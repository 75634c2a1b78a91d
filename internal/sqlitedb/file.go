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
		return fault.New(Unusable, "the path of the database is not absolute")
	}
	dir, err := safefile.OpenRoot(filepath.Dir(path), safefile.RefuseLinks)
	if err != nil {
		if errors.Is(err, safefile.NotSupported) {
			return err
		}
		return fault.Wrap(Unusable, err, "the directory of the database cannot be opened").
			WithHint("look at its path and permissions")
	}
	defer dir.Close()
	base := filepath.Base(path)
	if !d.o.ReadOnly && !d.o.Existing {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		switch {
		case err == nil:
			f.Close()
		case d.o.Bulk || !errors.Is(err, fs.ErrExist):
			return fault.Wrap(Unusable, err, "the database cannot be made").
				WithHint("look at the permissions of its directory and the space on its disk")
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
		return fault.Wrap(Unusable, err, "the database cannot be opened").WithHint("look at its permissions")
	}
	defer f.Close()
	if id.Size == 0 {
		return nil
	}
	pending := hasContent(dir, base+"-journal") || hasContent(dir, base+"-wal")
	var h [headerSize]byte
	if _, err := io.ReadFull(f, h[:]); err != nil || string(h[:len(magic)]) != magic {
		if hasContent(dir, base+"-journal") {
			return nil // a crash while the file was made: SQLite rolls it back
		}
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
	if pages := int64(binary.BigEndian.Uint32(h[atPageCount:])); !pending && pages*pageSize > id.Size {
		return d.damaged(errors.New("the file is shorter than its header says"))
	}
	return nil
}

func hasContent(dir *safefile.Root, name string) bool {
	st, err := dir.Stat(name)
	return err == nil && st.Size > 0
}
