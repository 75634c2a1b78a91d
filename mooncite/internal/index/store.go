package index

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/lexis"
)

//go:embed 0001_projection.sql
var projection string

// applicationID marks index files: "moon".
const applicationID = 0x6d6f6f6e

// Names in the state directory.
const (
	pointerName = "current"     // one line: the name of the index in force
	lockName    = "writer.lock" // held by the one writer
	indexPrefix = "index-"
	buildPrefix = "build-"
	indexSuffix = ".sqlite"
)

// How FTS5 is set: much memory and few merges while a lot is written, the defaults
// afterwards.
const (
	bulkHash    = 8 << 20
	bulkMerge   = 16
	normalHash  = 1 << 20
	normalMerge = 4
)

// wayOut is what helps against a damaged index.
const wayOut = "run `mooncite rebuild`; it reads the histories anew and does not touch them"

// ErrStale says that the index in force was made by another version of the words
// and has to be built anew before it can be searched.
var ErrStale = errors.New("index was made by another version")

// Store is the index in one state directory, whichever file holds it at the moment.
// It is safe for use by several goroutines.
type Store struct {
	path string
	dir  *safefile.Root

	mu  sync.Mutex // guards cur and at
	cur *handle
	at  safefile.Identity // of the pointer file that named cur
}

type handle struct {
	name string
	db   *sqlitedb.DB

	mu      sync.Mutex // guards catalog
	catalog *catalog
}

// Open opens the store in a private directory that exists. No index is made before
// the first publication.
func Open(path string) (*Store, error) {
	dir, err := privdir.Open(path, "the state directory")
	if err != nil {
		return nil, err
	}
	return &Store{path: path, dir: dir}, nil
}

// Close closes the files.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.cur != nil {
		err = s.cur.db.Close()
		s.cur = nil
	}
	return errors.Join(err, s.dir.Close())
}

// Lock waits for the right to publish, TryLock takes it only if nobody has it. Every
// publication needs it.
func (s *Store) Lock(ctx context.Context) (*privdir.Held, error) {
	return privdir.Lock(ctx, filepath.Join(s.path, lockName))
}

// TryLock takes the right to publish if nobody has it.
func (s *Store) TryLock() (*privdir.Held, error) {
	return privdir.TryLock(filepath.Join(s.path, lockName))
}

// current returns the index in force, or nil when there is none yet.
func (s *Store) current(ctx context.Context) (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := s.dir.Stat(pointerName)
	if errors.Is(err, fs.ErrNotExist) {
		return s.cur, nil
	}
	if err != nil {
		return nil, badPointer(err)
	}
	if s.cur != nil && info.Identity == s.at {
		return s.cur, nil
	}
	for last := ""; ; {
		name, err := s.pointer()
		if err != nil {
			return nil, err
		}
		if s.cur != nil && s.cur.name == name {
			s.at = info.Identity
			return s.cur, nil
		}
		db, err := s.open(ctx, name)
		if err == nil {
			s.swap(&handle{name: name, db: db}, info.Identity)
			return s.cur, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if name == last {
			return nil, fault.Wrap(sqlitedb.Damaged, err, "the index that the state directory's file %q names is not there", pointerName).WithHint("%s", wayOut)
		}
		last = name // another may have come into force and this one been removed: look again
	}
}

// open opens an index file that has to be there.
func (s *Store) open(ctx context.Context, name string) (*sqlitedb.DB, error) {
	o := options(false)
	o.Existing = true
	return sqlitedb.Open(ctx, filepath.Join(s.path, name), o)
}

// swap puts a new file in force for this process. The old one is closed when its
// readers are done. s.mu is held.
func (s *Store) swap(h *handle, at safefile.Identity) {
	if old := s.cur; old != nil {
		go old.db.Close()
	}
	s.cur, s.at = h, at
}

// pointer reads the name of the index in force.
func (s *Store) pointer() (string, error) {
	f, _, err := s.dir.Open(pointerName)
	if err != nil {
		return "", badPointer(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return "", badPointer(err)
	}
	name := strings.TrimSuffix(string(b), "\n")
	if _, ok := indexNumber(name); !ok {
		return "", fault.New(sqlitedb.Damaged, "the state directory's file %q does not name an index", pointerName).WithHint("%s", wayOut)
	}
	return name, nil
}

func badPointer(err error) error {
	return sqlitedb.Failed(err, "the state directory's file that names the index cannot be read or written")
}

func indexNumber(name string) (int64, bool) {
	s, ok := strings.CutPrefix(name, indexPrefix)
	if !ok {
		return 0, false
	}
	if s, ok = strings.CutSuffix(s, indexSuffix); !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0 && strconv.FormatInt(n, 10) == s
}

func options(bulk bool) sqlitedb.Options {
	return sqlitedb.Options{ApplicationID: applicationID, PageKiB: 16, Migrations: []string{projection}, Bulk: bulk, WayOut: wayOut}
}

// Exists reports whether anything was ever published.
func (s *Store) Exists() bool {
	_, err := s.dir.Stat(pointerName)
	return err == nil
}

// Read runs f on one state of the index. f gets nil when nothing was ever published.
// It must be short.
func (s *Store) Read(ctx context.Context, f func(*Snapshot) error) error {
	for {
		h, err := s.current(ctx)
		if err != nil {
			return err
		}
		if h == nil {
			return f(nil)
		}
		began := false
		err = h.db.Read(ctx, func(c *sqlitedb.Conn) error {
			snap, err := h.snapshot(ctx, c)
			if err != nil {
				return err
			}
			began = true
			return f(snap)
		})
		if err == nil || began {
			return err
		}
		// Another index may have come into force meanwhile, and the file of this one be gone.
		if now, e := s.current(ctx); e != nil || now == h {
			return err
		}
	}
}

// Publish runs f with a batch and publishes it into the index in force; the first
// publication makes one. bulk says that much is coming. The caller holds the lock.
func (s *Store) Publish(ctx context.Context, bulk bool, f func(*Batch) error) error {
	h, err := s.current(ctx)
	if err != nil {
		return err
	}
	if h == nil {
		if h, err = s.first(ctx); err != nil {
			return err
		}
	}
	return h.db.Write(ctx, func(c *sqlitedb.Conn) error {
		if err := checkVersion(ctx, c); err != nil {
			return err
		}
		hash, merge := normalHash, normalMerge
		if bulk {
			hash, merge = bulkHash, bulkMerge
		}
		if err := tune(ctx, c, hash, merge); err != nil {
			return err
		}
		return publish(ctx, c, f)
	})
}

func tune(ctx context.Context, c *sqlitedb.Conn, hash, merge int) error {
	for _, o := range []struct {
		name  string
		value int
	}{{"hashsize", hash}, {"automerge", merge}} {
		if _, err := c.Exec(ctx, "INSERT INTO words (words, rank) VALUES (?, ?)", o.name, o.value); err != nil {
			return err
		}
	}
	return nil
}

// mergePages is how much of the lists of words one step of Merge writes, in pages of
// about 4 KiB.
const mergePages = 1000

// Merge does for the index in force what a rebuild does at its end, in steps that other
// writers can come between. The caller holds the lock.
func (s *Store) Merge(ctx context.Context) error {
	h, err := s.current(ctx)
	if err != nil || h == nil {
		return err
	}
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := h.db.Write(ctx, func(c *sqlitedb.Conn) error {
			var before, after int64
			if _, err := c.Row(ctx, "SELECT total_changes()", nil, &before); err != nil {
				return err
			}
			if _, err := c.Exec(ctx, "INSERT INTO words (words, rank) VALUES ('merge', ?)", -mergePages); err != nil {
				return err
			}
			_, err := c.Row(ctx, "SELECT total_changes()", nil, &after)
			done = after-before < 2 // SQLite's own test for "nothing left to merge"
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion stamps a new index with the version of the words and refuses another.
func checkVersion(ctx context.Context, c *sqlitedb.Conn) error {
	want := strconv.Itoa(lexis.Version)
	v, err := fact(ctx, c, factTokens)
	switch {
	case err != nil:
		return err
	case v == "":
		_, err = c.Exec(ctx, "INSERT INTO facts (key, value) VALUES (?, ?)", factTokens, want)
		return err
	case v != want:
		return ErrStale
	}
	return nil
}

// first makes an empty index and puts it in force.
func (s *Store) first(ctx context.Context) (*handle, error) {
	name := indexPrefix + "1" + indexSuffix
	s.sweep("")
	db, err := sqlitedb.Open(ctx, filepath.Join(s.path, name), options(false))
	if err != nil {
		return nil, err
	}
	return s.put(name, db)
}

// put makes the pointer name an open index.
func (s *Store) put(name string, db *sqlitedb.DB) (*handle, error) {
	if err := s.dir.WriteFileAtomic(pointerName, []byte(name+"\n"), 0o600); err != nil {
		return nil, errors.Join(badPointer(err), db.Close())
	}
	info, err := s.dir.Stat(pointerName)
	if err != nil {
		return nil, errors.Join(badPointer(err), db.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.swap(&handle{name: name, db: db}, info.Identity)
	return s.cur, nil
}

// Rebuild runs f with a batch into a new file and, when f returns nil, puts that
// file in force in place of the old one. The caller holds the lock.
func (s *Store) Rebuild(ctx context.Context, f func(*Batch) error) error {
	next, err := s.nextNumber() // before the sweep: a name is never given twice
	if err != nil {
		return err
	}
	s.sweep(s.inForce())
	temp := s.buildPath()
	defer removeAll(temp)
	db, err := sqlitedb.Open(ctx, temp, options(true))
	if err != nil {
		return err
	}
	err = db.Write(ctx, func(c *sqlitedb.Conn) error {
		if err := errors.Join(checkVersion(ctx, c), tune(ctx, c, bulkHash, bulkMerge)); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "INSERT INTO facts (key, value) VALUES (?, '1')", factRebuilt); err != nil {
			return err
		}
		// Publications of one index are never taken for another's.
		if _, err := c.Exec(ctx, "INSERT INTO facts (key, value) VALUES (?, ?)", factNumber, strconv.FormatInt(next<<32, 10)); err != nil {
			return err
		}
		if err := publish(ctx, c, f); err != nil {
			return err
		}
		// One list of words is read quicker than many, and small publications later on
		// merge among themselves only.
		_, err := c.Exec(ctx, "INSERT INTO words (words) VALUES ('optimize')")
		return errors.Join(err, tune(ctx, c, normalHash, normalMerge))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	return s.enforce(ctx, temp, next)
}

// buildPath is where this process makes a new index file.
func (s *Store) buildPath() string {
	return filepath.Join(s.path, buildPrefix+strconv.Itoa(os.Getpid())+indexSuffix)
}

// enforce puts a complete file in force in place of the old one.
func (s *Store) enforce(ctx context.Context, temp string, next int64) error {
	name := indexPrefix + strconv.FormatInt(next, 10) + indexSuffix
	if err := os.Rename(temp, filepath.Join(s.path, name)); err != nil {
		return sqlitedb.Failed(err, "the new index cannot take its name")
	}
	db, err := s.open(ctx, name)
	if err != nil {
		return err
	}
	if _, err := s.put(name, db); err != nil {
		return err
	}
	s.sweep(name)
	return nil
}

// inForce is the name of the index in force, "" if there is none or it cannot be told.
func (s *Store) inForce() string {
	name, err := s.pointer()
	if err != nil {
		return ""
	}
	return name
}

// nextNumber is that of a new index file.
func (s *Store) nextNumber() (int64, error) {
	entries, _, err := s.dir.ReadDir(".")
	if err != nil {
		return 0, sqlitedb.Failed(err, "the state directory cannot be read")
	}
	next := int64(1)
	for _, e := range entries {
		if n, ok := indexNumber(e.Name); ok {
			next = max(next, n+1)
		}
	}
	return next, nil
}

// sweep removes index files other than keep, which crashed builds and earlier
// indexes left, and pointers that were never put in place. The lock is held, so nobody is building; readers of an earlier index
// keep it open until they look at the pointer again.
func (s *Store) sweep(keep string) {
	entries, _, err := s.dir.ReadDir(".")
	if err != nil {
		return
	}
	for _, e := range entries {
		base, _, _ := strings.Cut(e.Name, indexSuffix)
		base += indexSuffix
		_, numbered := indexNumber(base)
		pointing := strings.HasPrefix(e.Name, "."+pointerName+".") && strings.HasSuffix(e.Name, ".tmp")
		if e.Type == safefile.Regular && base != keep && (numbered || pointing || strings.HasPrefix(base, buildPrefix)) {
			os.Remove(filepath.Join(s.path, e.Name))
		}
	}
}

func removeAll(path string) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		os.Remove(path + suffix)
	}
}

// Size is the number of bytes the index takes on disk.
func (s *Store) Size() int64 {
	name := s.inForce()
	var n int64
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := s.dir.Stat(name + suffix); name != "" && err == nil {
			n += info.Size
		}
	}
	return n
}
