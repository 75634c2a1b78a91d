package sqlitedb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"localmcp/internal/fault"
)

// Bounds of every database.
const (
	BusyTimeout     = 5 * time.Second // how long a statement waits for another writer
	cacheKiB        = 8 << 10         // page cache of each connection
	readers         = 2               // connections that read
	checkpointBytes = 4 << 20         // the log is copied back after this much
	walLimit        = 16 << 20        // bytes the log is cut down to when it is reset
)

// Options say what a database is.
type Options struct {
	// ApplicationID marks the program's own files; it must not be 0.
	ApplicationID uint32
	// Migrations are SQL scripts; the one at index i brings version i to i+1. A
	// released one never changes; new ones are appended.
	Migrations []string
	// PageKiB is the page size of a new file, a power of two up to 64; 0 means 4.
	PageKiB int
	// Existing makes no file: a missing one gives fs.ErrNotExist.
	Existing bool
	// Bulk is for a new file that takes its name by rename when it is complete: no
	// journal, no flush before Close, one connection. A failed write spoils the file,
	// and a file that exists already is refused.
	Bulk bool
	// Durable flushes every commit to the disk before Write returns, for what cannot be
	// made again. Otherwise a power cut may take the last commits, but never a part of one.
	Durable bool
	// WayOut completes hints on damage with what the owner can do, such as "run
	// mooncite rebuild".
	WayOut string
}

// DB is an open database. It is safe for use by several goroutines.
type DB struct {
	o    Options
	path string
	pool *sql.DB

	writer  chan *Conn // holds the writing connection while nobody writes
	readers chan *Conn // one place per reading connection; nil means not opened yet

	mu     sync.Mutex // guards broken
	broken error      // why a bulk file cannot be used any more

	closed   chan struct{} // closed when Close begins
	closing  sync.Once
	closeErr error
}

// Open opens or makes the database at an absolute path in a private directory and
// brings it to the newest version. The faults are [Foreign], [Newer], [Damaged],
// [Busy], [Full], [Unusable], those of privdir for a file others could change, and
// safefile.NotSupported; whatever the fault, a file that was there is as it was.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if o.ApplicationID == 0 {
		panic("sqlitedb: Options.ApplicationID is 0")
	}
	d := &DB{o: o, path: path, closed: make(chan struct{})}
	if err := d.prepare(path); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", d.dsn())
	if err != nil {
		return nil, Failed(err, "the database cannot be opened")
	}
	d.pool = pool
	pool.SetMaxOpenConns(1 + readers)
	first, err := d.connect(ctx)
	if err == nil {
		if err = d.patiently(ctx, func() error { return d.start(ctx, first) }); err != nil {
			err = errors.Join(err, first.close())
		}
	}
	if err != nil {
		return nil, errors.Join(d.classify(err), pool.Close())
	}
	return d, nil
}

// start migrates on the first connection, which becomes the one that writes.
func (d *DB) start(ctx context.Context, c *Conn) error {
	if err := d.migrate(ctx, c); err != nil {
		return err
	}
	if !d.o.Bulk {
		if err := d.useWAL(ctx, c); err != nil {
			return err
		}
	}
	d.writer = make(chan *Conn, 1)
	d.writer <- c
	d.readers = d.writer
	if !d.o.Bulk {
		d.readers = make(chan *Conn, readers)
		for range readers {
			d.readers <- nil
		}
	}
	return nil
}

// useWAL switches the write-ahead log on; a file that has it keeps it.
func (d *DB) useWAL(ctx context.Context, c *Conn) error {
	var mode string
	if err := c.sql.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fault.New(Unusable, "the file system of the database does not allow a write-ahead log").
			WithHint("choose a place on a local disk")
	}
	return nil
}

// dsn names the file and the settings of every connection.
func (d *DB) dsn() string {
	q := url.Values{"_dqs": {"0"}}
	set := func(pragma string, value any) { q.Add("_pragma", fmt.Sprintf("%s(%v)", pragma, value)) }
	set("busy_timeout", BusyTimeout.Milliseconds())
	set("cache_size", -cacheKiB)
	if d.o.PageKiB != 0 {
		set("page_size", d.o.PageKiB<<10)
	}
	set("cell_size_check", 1)
	set("trusted_schema", 0)
	set("temp_store", "MEMORY")
	set("foreign_keys", 1)
	q.Set("mode", "rw")
	if d.o.Bulk {
		set("locking_mode", "EXCLUSIVE")
		set("journal_mode", "OFF")
		set("synchronous", "OFF")
	} else {
		q.Set("_defensive", "1")
		set("synchronous", map[bool]string{false: "NORMAL", true: "FULL"}[d.o.Durable])
		set("wal_autocheckpoint", checkpointBytes/(max(d.o.PageKiB, 4)<<10))
		set("journal_size_limit", walLimit)
	}
	u := url.URL{Scheme: "file", Path: d.path, RawQuery: q.Encode()}
	return u.String()
}

func (d *DB) connect(ctx context.Context) (*Conn, error) {
	c, err := d.pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{db: d, sql: c, stmts: map[string]*sql.Stmt{}}, nil
}

// Write runs f in a transaction that no other writer can come between; it is
// committed when f returns nil and undone otherwise. Only one Write runs at a time, so
// f must not call Write.
func (d *DB) Write(ctx context.Context, f func(*Conn) error) error {
	if err := d.spoiled(nil); err != nil {
		return err
	}
	c, err := d.take(ctx, d.writer)
	if err != nil {
		return err
	}
	defer func() { d.writer <- c }()
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return d.classify(err)
	}
	done := false
	defer func() {
		if !done { // f failed or panicked
			d.undo(ctx, c)
		}
	}()
	if err := f(c); err != nil {
		return d.classify(err)
	}
	if err := c.exec(ctx, "COMMIT"); err != nil {
		return d.classify(err)
	}
	done = true
	return nil
}

// undo rolls back. A bulk file has no journal to roll back from.
func (d *DB) undo(ctx context.Context, c *Conn) {
	if d.o.Bulk {
		d.spoiled(fault.New(Damaged, "writing the new database failed earlier").WithHint("start again"))
		return
	}
	// It fails only when SQLite has rolled back by itself, as on a full disk.
	_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK")
}

// spoiled notes why the file is unusable, when err is not nil, and returns the note.
func (d *DB) spoiled(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken == nil {
		d.broken = err
	}
	return d.broken
}

// Read runs f on one state of the database, which does not change while f runs. It
// must be short: while it runs the log cannot be reset. As many Reads run at a time as
// there are readers, so f should not call Read.
func (d *DB) Read(ctx context.Context, f func(*Conn) error) error {
	if err := d.spoiled(nil); err != nil {
		return err
	}
	c, err := d.take(ctx, d.readers)
	if err != nil {
		return err
	}
	defer func() { d.readers <- c }()
	if c == nil {
		fresh, err := d.connect(ctx)
		if err != nil {
			return d.classify(err)
		}
		if err := fresh.exec(ctx, "PRAGMA query_only=1"); err != nil {
			return errors.Join(d.classify(err), fresh.close())
		}
		c = fresh
	}
	if d.o.Bulk {
		return d.classify(f(c))
	}
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return d.classify(err)
	}
	defer func() { _ = c.exec(context.WithoutCancel(ctx), "ROLLBACK") }()
	return d.classify(f(c))
}

// ErrClosed says that nothing was done because the database is being closed.
var ErrClosed = errors.New("the database is closed")

func (d *DB) take(ctx context.Context, from chan *Conn) (*Conn, error) {
	select {
	case c := <-from:
		return c, nil
	case <-d.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Checkpoint copies the write-ahead log into the database and cuts it to nothing. It
// reports whether it could: somebody may still be reading an older state.
func (d *DB) Checkpoint(ctx context.Context) (done bool, err error) {
	c, err := d.take(ctx, d.writer)
	if err != nil {
		return false, err
	}
	defer func() { d.writer <- c }()
	var busy, pages, copied int
	err = c.sql.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &pages, &copied)
	return err == nil && busy == 0, d.classify(err)
}

// CopyTo writes what the database holds into a new file, flushed to disk, without a
// trace of what was deleted. The file must not exist, and does not when CopyTo fails.
// The faults are [Full], [Busy], [Damaged] and [Unusable].
func (d *DB) CopyTo(ctx context.Context, path string) error {
	if err := d.spoiled(nil); err != nil {
		return err
	}
	c, err := d.take(ctx, d.writer)
	if err != nil {
		return err
	}
	defer func() { d.writer <- c }()
	if err := create(path); err != nil {
		return Failed(err, "the copy of the database cannot be made")
	}
	_, err = c.sql.ExecContext(ctx, "VACUUM INTO ?", path)
	if err == nil {
		err = flush(path)
	}
	if err != nil {
		err = d.classify(err) // while the disk is still as it was then
		_ = os.Remove(path)
	}
	return err
}

// Close waits for reads and writes to end and closes the file. A bulk file is flushed
// to disk, so that it may take its name. What is called after it but
// Close, which answers the same again, fails with [ErrClosed].
func (d *DB) Close() error {
	d.closing.Do(func() { d.closeErr = d.close() })
	return d.closeErr
}

func (d *DB) close() error {
	close(d.closed)
	var errs []error
	errs = append(errs, (<-d.writer).close())
	if !d.o.Bulk {
		for range readers {
			if c := <-d.readers; c != nil {
				errs = append(errs, c.close())
			}
		}
	}
	errs = append(errs, d.pool.Close())
	if d.o.Bulk {
		errs = append(errs, d.spoiled(nil), flush(d.path))
	}
	return d.classify(errors.Join(errs...))
}
