package sqlitedb

import (
	"context"
	"errors"
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
		return fault.Wrap(Full, err, "the disk is full").WithHint("free some space and try again; nothing was lost")
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
		return fault.Wrap(Unusable, err, "the database cannot be read or written").
			WithHint("look at the permissions and the health of the disk it is on")
	}
	return err
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
