package sqlitedb_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/sqlitedb"
	"localmcp/internal/testenv"
)

const appID = 0x6d6f6f6e

var steps = []string{
	`CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL); INSERT INTO note(text) VALUES('first');`,
	`ALTER TABLE note ADD COLUMN at INTEGER;`,
	`CREATE VIRTUAL TABLE find USING fts5(text, content='', contentless_delete=1); INSERT INTO find(rowid, text) SELECT id, text FROM note;`,
}

func options() sqlitedb.Options {
	return sqlitedb.Options{ApplicationID: appID, Migrations: steps, WayOut: "run rebuild"}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is where a database can be, in a directory closed to others.
func place(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o700))
	return filepath.Join(dir, "db ?#%.sqlite") // no character of a path means anything
}

func open(t testing.TB, path string, o sqlitedb.Options) *sqlitedb.DB {
	t.Helper()
	d, err := sqlitedb.Open(t.Context(), path, o)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func number(t testing.TB, d *sqlitedb.DB, query string, args ...any) int {
	t.Helper()
	var n int
	must(t, d.Read(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Row(t.Context(), query, args, &n)
		return err
	}))
	return n
}

func add(ctx context.Context, d *sqlitedb.DB, text string) error {
	return d.Write(ctx, func(c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO note(text) VALUES(?)", text)
		return err
	})
}

func TestMigrationsFromEveryVersion(t *testing.T) {
	var want string
	for from := len(steps); from >= 0; from-- {
		path := place(t)
		o := options()
		o.Migrations = steps[:from]
		must(t, open(t, path, o).Close())
		d := open(t, path, options())
		if v := number(t, d, "PRAGMA user_version"); v != len(steps) {
			t.Errorf("from %d: version %d", from, v)
		}
		if id := number(t, d, "PRAGMA application_id"); id != appID {
			t.Errorf("from %d: application id %x", from, id)
		}
		if n := number(t, d, "SELECT count(*) FROM find WHERE find MATCH 'first'"); n != 1 {
			t.Errorf("from %d: %d rows found", from, n)
		}
		var schema string
		must(t, d.Read(t.Context(), func(c *sqlitedb.Conn) error {
			_, err := c.Row(t.Context(), "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema ORDER BY name)", nil, &schema)
			return err
		}))
		if want == "" {
			want = schema
		}
		if diff := cmp.Diff(want, schema); diff != "" {
			t.Errorf("from %d: %s", from, diff)
		}
	}
}

func TestFailedMigrationLeavesTheFileAsItWas(t *testing.T) {
	path := place(t)
	must(t, open(t, path, options()).Close())
	before := testenv.Fingerprint(t, path)
	o := options()
	o.Migrations = append(o.Migrations[:len(steps):len(steps)], "CREATE TABLE more(x)", "CREATE nonsense")
	if _, err := sqlitedb.Open(t.Context(), path, o); err == nil || !strings.Contains(err.Error(), "migration 5") {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff(before, testenv.Fingerprint(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestSettings(t *testing.T) {
	path := place(t)
	d := open(t, path, options())
	for pragma, want := range map[string]int{
		"page_size": 4096, "synchronous": 1, "cache_size": -8192, "trusted_schema": 0, "cell_size_check": 1,
		"temp_store": 2, "busy_timeout": 5000, "wal_autocheckpoint": 1024, "journal_size_limit": 16 << 20, "query_only": 1,
	} {
		if got := number(t, d, "PRAGMA "+pragma); got != want {
			t.Errorf("%s is %d, want %d", pragma, got, want)
		}
	}
	o := options()
	o.Durable = true
	if got := number(t, open(t, place(t), o), "PRAGMA synchronous"); got != 2 {
		t.Errorf("durable: synchronous is %d, want 2", got)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		st, err := os.Stat(name)
		must(t, err)
		if st.Mode() != 0o600 {
			t.Errorf("%s has mode %v", filepath.Base(name), st.Mode())
		}
	}
	err := d.Read(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Exec(t.Context(), "INSERT INTO note(text) VALUES('x')")
		return err
	})
	if err == nil {
		t.Error("a reader wrote")
	}
}

func TestRefusedUnharmed(t *testing.T) {
	good := place(t)
	must(t, open(t, good, options()).Close())
	bytesOfGood, err := os.ReadFile(good)
	must(t, err)
	foreign := place(t)
	o := options()
	o.ApplicationID = 1
	must(t, open(t, foreign, o).Close())
	bytesOfForeign, err := os.ReadFile(foreign)
	must(t, err)
	unmarked := bytes.Clone(bytesOfGood)
	copy(unmarked[68:72], []byte{0, 0, 0, 0})
	newer := place(t)
	o = options()
	o.Migrations = append(o.Migrations[:len(steps):len(steps)], "CREATE TABLE later(x)")
	must(t, open(t, newer, o).Close())
	bytesOfNewer, err := os.ReadFile(newer)
	must(t, err)
	schema := bytes.Clone(bytesOfGood)
	for i := 100; i < 4096; i++ {
		schema[i] = 0xa5
	}

	for name, c := range map[string]struct {
		data []byte
		code fault.Code
		hint string
	}{
		"another program's":  {bytesOfForeign, sqlitedb.Foreign, "another place"},
		"without a mark":     {unmarked, sqlitedb.Foreign, "another place"},
		"of a newer version": {bytesOfNewer, sqlitedb.Newer, "run rebuild"},
		"text":               {[]byte("not a database, but long enough to be taken for one if nobody looks closely at how it begins, so look"), sqlitedb.Damaged, "run rebuild"},
		"short":              {[]byte("SQL"), sqlitedb.Damaged, "run rebuild"},
		"cut":                {bytesOfGood[:len(bytesOfGood)-4096], sqlitedb.Damaged, "run rebuild"},
		"overwritten":        {schema, sqlitedb.Damaged, "run rebuild"},
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t)
			must(t, os.WriteFile(path, c.data, 0o600))
			before := testenv.Fingerprint(t, path)
			for _, existing := range []bool{false, true} {
				o := options()
				o.Existing = existing
				_, err := sqlitedb.Open(t.Context(), path, o)
				if !errors.Is(err, c.code) || !strings.Contains(fault.From(err).Hint, c.hint) {
					t.Errorf("got %v (%q)", err, fault.From(err).Hint)
				}
			}
			if diff := cmp.Diff(before, testenv.Fingerprint(t, path)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesOthersCouldChangeAreRefused(t *testing.T) {
	path := place(t)
	must(t, open(t, path, options()).Close())
	must(t, os.Chmod(path, 0o644))
	if _, err := sqlitedb.Open(t.Context(), path, options()); !errors.Is(err, privdir.Unsafe) {
		t.Errorf("mode 0644: %v", err)
	}
	must(t, os.Chmod(path, 0o600))
	must(t, os.Symlink("elsewhere", path+"-wal"))
	if _, err := sqlitedb.Open(t.Context(), path, options()); !errors.Is(err, privdir.Unsafe) {
		t.Errorf("a link as log: %v", err)
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	d := open(t, place(t), options())
	must(t, d.Write(t.Context(), func(c *sqlitedb.Conn) error {
		if _, err := c.Exec(t.Context(), "INSERT INTO note(text) VALUES('unpublished')"); err != nil {
			return err
		}
		if n := number(t, d, "SELECT count(*) FROM note"); n != 1 {
			t.Errorf("a reader sees %d notes during the write", n)
		}
		return nil
	}))
	must(t, d.Read(t.Context(), func(c *sqlitedb.Conn) error {
		count := func() (n int) {
			_, err := c.Row(t.Context(), "SELECT count(*) FROM note", nil, &n)
			must(t, err)
			return n
		}
		first := count()
		must(t, add(t.Context(), d, "later"))
		if again := count(); again != first {
			t.Errorf("a read saw %d and then %d notes", first, again)
		}
		return nil
	}))
	if n := number(t, d, "SELECT count(*) FROM note"); n != 3 {
		t.Errorf("%d notes at the end", n)
	}
}

func TestFailedWriteIsUndone(t *testing.T) {
	d := open(t, place(t), options())
	mine := errors.New("mine")
	write := func(end func() error) error {
		return d.Write(t.Context(), func(c *sqlitedb.Conn) error {
			_, err := c.Exec(t.Context(), "DELETE FROM note")
			must(t, err)
			return end()
		})
	}
	if err := write(func() error { return mine }); err != mine {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { recover() }()
		write(func() error { panic("bug") })
	}()
	if n := number(t, d, "SELECT count(*) FROM note"); n != 1 {
		t.Errorf("%d notes are left", n)
	}
	must(t, add(t.Context(), d, "still works"))
}

func TestManyOpenAndWriteAtOnce(t *testing.T) {
	for range 10 { // one round alone often meets no other that is just switching the log on
		openAndWriteAtOnce(t)
	}
}

func openAndWriteAtOnce(t *testing.T) {
	path := place(t)
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for range 8 { // as separate processes would
		wg.Go(func() {
			d, err := sqlitedb.Open(context.Background(), path, options())
			if err != nil {
				errs <- err
				return
			}
			defer d.Close()
			for range 5 {
				errs <- add(t.Context(), d, "x")
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		must(t, err)
	}
	if n := number(t, open(t, path, options()), "SELECT count(*) FROM note"); n != 41 {
		t.Errorf("%d notes, want 41", n)
	}
}

func TestCheckpointEmptiesTheLog(t *testing.T) {
	path := place(t)
	d := open(t, path, options())
	must(t, add(t.Context(), d, strings.Repeat("x", 1<<20)))
	must(t, d.Read(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Exec(t.Context(), "SELECT 1 FROM note")
		return err
	}))
	done, err := d.Checkpoint(t.Context())
	must(t, err)
	st, err := os.Stat(path + "-wal")
	must(t, err)
	if !done || st.Size() != 0 {
		t.Errorf("done %v, the log has %d bytes", done, st.Size())
	}
}

func TestBulkFileIsAnOrdinaryDatabaseAfterwards(t *testing.T) {
	path := place(t)
	o := options()
	o.Bulk = true
	d, err := sqlitedb.Open(t.Context(), path+".new", o)
	must(t, err)
	must(t, add(t.Context(), d, "bulk"))
	if n := number(t, d, "SELECT count(*) FROM note"); n != 2 {
		t.Errorf("%d notes while it is made", n)
	}
	must(t, d.Close())
	if _, err := sqlitedb.Open(t.Context(), path+".new", o); !errors.Is(err, sqlitedb.Unusable) {
		t.Errorf("an existing file was opened in bulk: %v", err)
	}
	must(t, os.Rename(path+".new", path))
	if n := number(t, open(t, path, options()), "SELECT count(*) FROM note"); n != 2 {
		t.Errorf("%d notes afterwards", n)
	}
}

func TestFailedBulkWriteSpoilsTheFile(t *testing.T) {
	o := options()
	o.Bulk = true
	d, err := sqlitedb.Open(t.Context(), place(t), o)
	must(t, err)
	if err := d.Write(t.Context(), func(*sqlitedb.Conn) error { return errors.New("mine") }); err == nil {
		t.Fatal("no error")
	}
	if err := add(t.Context(), d, "x"); !errors.Is(err, sqlitedb.Damaged) {
		t.Errorf("a write afterwards: %v", err)
	}
	if err := d.Close(); !errors.Is(err, sqlitedb.Damaged) {
		t.Errorf("Close: %v", err)
	}
}

func TestExistingMakesNoFile(t *testing.T) {
	path := place(t)
	o := options()
	o.Existing = true
	if _, err := sqlitedb.Open(t.Context(), path, o); !errors.Is(err, fs.ErrNotExist) || fault.From(err).Hint == "" {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made")
	}
	must(t, open(t, path, options()).Close())
	if n := number(t, open(t, path, o), "SELECT count(*) FROM note"); n != 1 {
		t.Errorf("%d notes", n)
	}
}

func TestManyStatements(t *testing.T) {
	d := open(t, place(t), options())
	must(t, d.Read(t.Context(), func(c *sqlitedb.Conn) error {
		for i := range 400 {
			var got int
			query := "SELECT " + strings.Repeat("1+", i%350) + "1"
			if _, err := c.Row(t.Context(), query, nil, &got); err != nil {
				return err
			}
			if got != i%350+1 {
				t.Errorf("%s = %d", query, got)
			}
		}
		return nil
	}))
}

func TestFullDiskLosesNothing(t *testing.T) {
	d := open(t, place(t), options())
	limit := func(pages string) {
		must(t, d.Write(t.Context(), func(c *sqlitedb.Conn) error {
			var n int
			_, err := c.Row(t.Context(), "PRAGMA max_page_count="+pages, nil, &n)
			return err
		}))
	}
	limit("20") // as a full disk does, SQLite says SQLITE_FULL
	err := add(t.Context(), d, strings.Repeat("x", 1<<20))
	if !errors.Is(err, sqlitedb.Full) || fault.From(err).Hint == "" {
		t.Fatalf("got %v", err)
	}
	if n := number(t, d, "SELECT count(*) FROM note"); n != 1 {
		t.Errorf("%d notes", n)
	}
	limit("1000000")
	must(t, add(t.Context(), d, "room again"))
}

func BenchmarkBulkInsert(b *testing.B) {
	o := options()
	o.Bulk = true
	d, err := sqlitedb.Open(b.Context(), place(b), o)
	must(b, err)
	defer d.Close()
	ctx := context.Background()
	b.ReportAllocs()
	must(b, d.Write(ctx, func(c *sqlitedb.Conn) error {
		for b.Loop() {
			if _, err := c.Exec(ctx, "INSERT INTO note(text, at) VALUES(?, ?)", "some words of a note", 7); err != nil {
				return err
			}
		}
		return nil
	}))
}

func BenchmarkReadRow(b *testing.B) {
	d := open(b, place(b), options())
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		must(b, d.Read(ctx, func(c *sqlitedb.Conn) error {
			var text string
			_, err := c.Row(ctx, "SELECT text FROM note WHERE id=?", []any{1}, &text)
			return err
		}))
	}
}
