package sqlitedb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"localmcp/internal/fault"
)

// The codes of this package's faults.
const (
	// Busy says that another process wrote for longer than one waits; try again.
	Busy fault.Code = "database_busy"
	// Damaged says that the file is no database or its content is broken.
	Damaged fault.Code = "database_damaged"
	// Foreign says that another program made the file.
	Foreign fault.Code = "database_foreign"
	// Newer says that a newer version of the program made the file.
	Newer fault.Code = "database_newer"
	// Full says that the disk is full. What was committed before is safe.
	Full fault.Code = "disk_full"
	// Unusable says that the file could not be opened, read or written.
	Unusable fault.Code = "database_unusable"
)

// classify gives an error of the driver its code. Other errors, those of a caller's
// own function among them, pass unchanged.
func (d *DB) classify(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	switch e.Code() & 0xff { // the primary code
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fault.Wrap(Busy, err, "another process is writing to the database").WithHint("try again in a moment")
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return d.damaged(err)
	case sqlite3.SQLITE_FULL:
		return full(err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
		// SQLite keeps the system's answer to itself, but for most writes. A full disk
		// is also met where the log's index grows and where files are flushed.
		if asked := d.askForRoom(); lacksRoom(asked) {
			return full(errors.Join(err, asked))
		}
		return Failed(err, "the database cannot be read or written")
	case sqlite3.SQLITE_ERROR: // statements are made for the tables of the migrations
		if strings.Contains(e.Error(), "no such table: ") || strings.Contains(e.Error(), "no such column: ") {
			return d.damaged(err)
		}
	}
	return err
}

// Failed gives an error of the file system, met with a database or a file beside it, its
// code: [Full] when the disk is, and otherwise [Unusable] with the sentence given.
func Failed(err error, sentence string) *fault.Error {
	if lacksRoom(err) {
		return full(err)
	}
	return fault.Wrap(Unusable, err, "%s", sentence).WithHint("look at its path and permissions, and at the health of its disk")
}

func full(cause error) *fault.Error {
	return fault.Wrap(Full, cause, "the disk is full").WithHint("free some space and try again; nothing was lost")
}

// lacksRoom reports whether an error says that the disk, or what the user may have of
// it, is full.
func lacksRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// roomBytes is what askForRoom writes: no page is larger.
const roomBytes = 64 << 10

// Room tries whether something can be written beside the database. It gives [Full] or
// [Unusable], and leaves nothing behind.
func (d *DB) Room() error {
	if err := d.askForRoom(); err != nil {
		return Failed(err, "nothing can be written beside the database")
	}
	return nil
}

// askForRoom writes a page to a file beside the database that has no name any more, so
// that the system says what is wrong there.
func (d *DB) askForRoom() error {
	f, err := os.CreateTemp(filepath.Dir(d.path), filepath.Base(d.path)+"-room-*")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	if _, err := f.Write(make([]byte, roomBytes)); err != nil {
		return err
	}
	return f.Sync()
}

func (d *DB) damaged(cause error) *fault.Error {
	f := fault.Wrap(Damaged, cause, "the database file is damaged or no database")
	if d.o.WayOut != "" {
		return f.WithHint("%s", d.o.WayOut)
	}
	return f.WithHint("move the file away and start again")
}

func (d *DB) foreign() *fault.Error {
	return fault.New(Foreign, "the database file was made by another program").
		WithHint("move the file away, or choose another place")
}

func (d *DB) newer(version int) *fault.Error {
	f := fault.New(Newer, "the database has version %d, which is newer than this program's %d", version, len(d.o.Migrations))
	const hint = "use the newer version of the program"
	if d.o.WayOut != "" {
		return f.WithHint("%s, or %s", hint, d.o.WayOut)
	}
	return f.WithHint(hint)
}

// patiently repeats f, which makes or opens the file, while that fails with [Busy], for
// [BusyTimeout]. SQLite itself does not wait where it fears that two would wait for each other:
// a connection that switches the log on while another is about to write.
func (d *DB) patiently(ctx context.Context, f func() error) error {
	end := time.Now().Add(BusyTimeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := d.classify(f())
		if !errors.Is(err, Busy) || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}
