package state

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/sqlitedb"
)

//go:embed 0001_state.sql
var first string

//go:embed 0002_jobs.sql
var jobs string

//go:embed 0003_schedules.sql
var schedules string

//go:embed 0004_oauth.sql
var oauth string

// Migrations are the steps of the schema, for the tests of packages that own tables and for
// the generated documents. The one at index i brings version i to i+1.
var Migrations = []string{first, jobs, schedules, oauth}

// applicationID marks the database: "dodo".
const applicationID = 0x646f646f

// FileName is the database's name in the installation directory.
const FileName = "state.db"

const what = "the installation directory"

// wayOut is what helps against a database that cannot be used.
const wayOut = "stop every dodo, move state.db and the files beside it that begin with its name out of the installation directory, and start again; " +
	"trust, approvals, grants and the history of changes then begin anew, and no file of a workspace is touched"

// Options are what a store needs beside its directory.
type Options struct {
	// Existing makes no database: a missing one gives fs.ErrNotExist.
	Existing bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Store is the open state of an installation. It is safe for use by several goroutines;
// several processes may each have one.
type Store struct {
	dir    string
	now    func() time.Time
	secret []byte
	file   fs.FileInfo // the database when it was opened

	// One database through two connections that write. What must be on the disk before a
	// call goes on is written through durable. The audit is written through quick: a power
	// cut may take its last rows, never one from the middle (ADR 0010).
	durable, quick *sqlitedb.DB
	turn           chan struct{} // holds a token while nobody of this process writes: SQLite would poll

	mu   sync.Mutex // guards self
	self *life      // this process in the eyes of others; nil until it was needed
}

// Open opens, or makes, the state in an installation directory, which must be private
// ([privdir.Open]). A file that is damaged, made by a newer version or by another program
// is refused and left as it is; the fault says what to do.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	private, err := privdir.Open(dir, what)
	if err != nil {
		return nil, Fault(err)
	}
	private.Close()
	s := &Store{dir: dir, now: o.Now, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	ctx = context.WithoutCancel(ctx) // half an opening helps nobody
	if s.durable, err = s.open(ctx, true, o.Existing); err != nil {
		return nil, Fault(err)
	}
	if s.quick, err = s.open(ctx, false, true); err != nil {
		return nil, Fault(errors.Join(err, s.durable.Close()))
	}
	if s.file, err = os.Lstat(s.path()); err != nil {
		return nil, errors.Join(gone(err), s.Close())
	}
	if s.secret, err = s.installSecret(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, durable, existing bool) (*sqlitedb.DB, error) {
	return sqlitedb.Open(ctx, s.path(), sqlitedb.Options{
		ApplicationID: applicationID, Migrations: Migrations, Existing: existing, Durable: durable, WayOut: wayOut,
	})
}

func (s *Store) path() string { return filepath.Join(s.dir, FileName) }

// inPlace refuses to go on when the database is not at its path any more: what is written
// would be lost, and what is read nobody can change.
func (s *Store) inPlace() error {
	now, err := os.Lstat(s.path())
	if err == nil && os.SameFile(now, s.file) {
		return nil
	}
	return gone(err)
}

func gone(cause error) error {
	return fault.Wrap(contract.InternalError, cause, "the installation directory, or the state database in it, was moved, removed or replaced while dodo ran").
		WithHint("the owner puts it back or leaves it so, and starts dodo's clients anew")
}

// Room tries whether the disk of the installation directory takes more, and leaves nothing
// behind. A full one gives RESOURCE_LIMIT.
func (s *Store) Room() error { return Fault(s.durable.Room()) }

// Close ends the use of the state. Keys that this process reserved and neither completed
// nor released are from now on those of a process that is gone.
func (s *Store) Close() error {
	return errors.Join(s.leave(), s.quick.Close(), s.durable.Close())
}

// Dir is the installation directory.
func (s *Store) Dir() string { return s.dir }

// Read runs f on one state of the database. Its faults have codes of contract.
func (s *Store) Read(ctx context.Context, f func(context.Context, *sqlitedb.Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.inPlace(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // one that can be cancelled costs a goroutine a statement
	return Fault(s.durable.Read(ctx, func(c *sqlitedb.Conn) error { return f(ctx, c) }))
}

// Write runs f in a transaction that no other writer, of this process or another, can come
// between. When it returns nil, what f wrote is on the disk. f must not call Write and
// must be short. Its faults have codes of contract.
func (s *Store) Write(ctx context.Context, f func(context.Context, *sqlitedb.Conn) error) error {
	return s.write(ctx, s.durable, f)
}

// attempts is how often a transaction is begun while other processes write, each time
// for [sqlitedb.BusyTimeout].
const attempts = 2

func (s *Store) write(ctx context.Context, db *sqlitedb.DB, f func(context.Context, *sqlitedb.Conn) error) error {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.inPlace(); err != nil {
		return err
	}
	var err error
	for range attempts {
		begun := false
		err = db.Write(ctx, func(c *sqlitedb.Conn) error {
			begun = true
			return f(ctx, c)
		})
		if begun || !errors.Is(err, sqlitedb.Busy) {
			break
		}
	}
	return Fault(err)
}

// The keys of meta.
const (
	metaSecret = "install-secret"
	metaAccess = "owner-access-mode"
)

// secretBytes is the size of the install secret.
const secretBytes = 32

// installSecret reads the secret, or makes it. Of two processes that make it the first wins.
func (s *Store) installSecret(ctx context.Context) ([]byte, error) {
	var text string
	read := func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Row(ctx, "SELECT value FROM meta WHERE key = ?", []any{metaSecret}, &text)
		return err
	}
	err := s.Read(ctx, read)
	if err == nil && text == "" {
		fresh := make([]byte, secretBytes)
		rand.Read(fresh)
		err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			if _, err := c.Exec(ctx, "INSERT OR IGNORE INTO meta VALUES (?, ?)", metaSecret, hex.EncodeToString(fresh)); err != nil {
				return err
			}
			return read(ctx, c)
		})
	}
	if err != nil {
		return nil, err
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != secretBytes {
		return nil, damaged("its install secret cannot be read")
	}
	return secret, nil
}

// WorkspaceID is the id of a root in this installation.
func (s *Store) WorkspaceID(root string) string { return contract.WorkspaceID(s.secret, root) }

func (s *Store) stamp() int64 { return s.now().UnixMilli() }

func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// A scanner takes the columns of a row.
type scanner = func(...any) error

// exec runs a statement and says how many rows it changed.
func exec(ctx context.Context, c *sqlitedb.Conn, query string, args ...any) (int64, error) {
	r, err := c.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}
