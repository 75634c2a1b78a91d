package memory

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
)

//go:embed 0001_memory.sql
var schema string

var migrations = []string{schema}

// applicationID marks the database: "memo".
const applicationID = 0x6d656d6f

// Names in the state directory.
const (
	databaseName = "learned-memory.sqlite"
	lockName     = "learned-memory.lock" // held shared while the database is open
)

// DatabasePath is the database's own file. A deletion is in it when it is answered, unless a
// reader holds the log back.
func DatabasePath(stateDir string) string { return filepath.Join(stateDir, databaseName) }

const stateWhat = "the state directory"

// wayOut is what helps against a database that cannot be used. It cannot be made again.
const wayOut = "put a copy of learned-memory.sqlite from a backup in its place while no client runs, or remove it with `mooncite memory purge`; evidence is not affected"

// Evidence is what memory asks of the engine.
type Evidence interface {
	// ResolveAnchors looks for changes in the histories and says how the index holds
	// at most evidence.MaxAnchors citations.
	ResolveAnchors(context.Context, []evidence.Ref) (evidence.Projection, []evidence.Resolution, error)
	// Prove re-reads the source of one citation, with window neighbours on each side.
	Prove(ctx context.Context, id string, window int) (evidence.Proof, error)
	// SecretIn names the first secret of a well-known shape in a text.
	SecretIn(text string) (kind string, found bool)
}

// A Store is the memories in one state directory. The database is opened, and made if
// need be, at the first operation: a fault of it is that operation's fault. It is safe
// for use by several goroutines; several processes may each have one.
type Store struct {
	dir      string
	program  string // version of mooncite
	evidence Evidence
	now      func() time.Time

	mu   sync.Mutex // guards what follows
	db   *sqlitedb.DB
	held *privdir.Held

	words sync.Mutex // guards lexis
	lexis lexis.Tokenizer
}

// New makes a store over a state directory that exists when the first operation comes.
// program is the version that revisions name as their writer; now may be nil.
func New(stateDir, program string, e Evidence, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{dir: stateDir, program: program, evidence: e, now: now}
}

// Close closes the database if it was opened.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return errors.Join(db.Close(), s.held.Unlock())
}

// open returns the database. existing makes none: a missing one gives fs.ErrNotExist.
func (s *Store) open(ctx context.Context, existing bool) (*sqlitedb.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return s.db, nil
	}
	if existing { // where nothing was ever kept not even a lock is made
		if _, err := os.Lstat(filepath.Join(s.dir, databaseName)); errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	dir, err := privdir.Open(s.dir, stateWhat)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	held, err := privdir.TryLockShared(filepath.Join(s.dir, lockName))
	if err != nil {
		return nil, err
	}
	db, err := s.openLocked(ctx, existing)
	if err != nil {
		return nil, errors.Join(err, held.Unlock())
	}
	s.db, s.held = db, held
	return db, nil
}

func (s *Store) openLocked(ctx context.Context, existing bool) (*sqlitedb.DB, error) {
	ctx = context.WithoutCancel(ctx) // a call that is taken back must not leave half an opening to the next
	db, err := sqlitedb.Open(ctx, filepath.Join(s.dir, databaseName), sqlitedb.Options{
		ApplicationID: applicationID, Migrations: migrations, Existing: existing, Durable: true, WayOut: wayOut,
	})
	if err != nil {
		return nil, err
	}
	stale := false
	if err := db.Read(ctx, func(c *sqlitedb.Conn) error {
		if err := checkSchema(ctx, c); err != nil {
			return err
		}
		if stale, err = staleWords(ctx, c); err != nil {
			return err
		}
		return check(ctx, c)
	}); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if stale {
		if err := db.Write(ctx, func(c *sqlitedb.Conn) error { return s.reindex(ctx, c) }); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// read runs f on one state of the memories.
func (s *Store) read(ctx context.Context, f func(context.Context, *sqlitedb.Conn) error) error {
	db, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	return db.Read(ctx, func(c *sqlitedb.Conn) error { return f(context.WithoutCancel(ctx), c) })
}

// write runs f in an IMMEDIATE transaction: between what f reads and what it writes
// nobody else writes.
func (s *Store) write(ctx context.Context, f func(context.Context, *sqlitedb.Conn) error) error {
	db, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	return db.Write(ctx, func(c *sqlitedb.Conn) error {
		ctx := context.WithoutCancel(ctx)
		if _, err := c.Exec(ctx, "PRAGMA secure_delete = ON"); err != nil {
			return err
		}
		return f(ctx, c)
	})
}

// A scanner takes the columns of a row.
type scanner = func(...any) error

func (s *Store) stamp() int64 { return s.now().UnixMilli() }

// timeOf is a time in answers: UTC with three digits of a second.
func timeOf(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func timeOrNil(ms *int64) *string {
	if ms == nil {
		return nil
	}
	t := timeOf(*ms)
	return &t
}

// damaged is the fault of a database that SQLite can read and we cannot believe.
func damaged(what string) error {
	return fault.New(sqlitedb.Damaged, "the database of learned memory is damaged: %s", what).WithHint("%s", wayOut)
}
