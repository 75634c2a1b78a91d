package sqlitedb_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// A copy has what is there and no trace of what was deleted.
func TestCopyTo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	o := sqlitedb.Options{ApplicationID: 7, Migrations: []string{"CREATE TABLE t (v TEXT)"}}
	db, err := sqlitedb.Open(t.Context(), filepath.Join(dir, "a.sqlite"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	write := func(query string, args ...any) {
		t.Helper()
		if err := db.Write(t.Context(), func(c *sqlitedb.Conn) error {
			_, err := c.Exec(t.Context(), query, args...)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	write("INSERT INTO t VALUES (?), ('kept')", strings.Repeat("zanzibarium ", 500))
	write("DELETE FROM t WHERE v <> 'kept'")
	path := filepath.Join(dir, "b.sqlite")
	if err := db.CopyTo(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := db.CopyTo(t.Context(), path); !errors.Is(err, sqlitedb.Unusable) || !errors.Is(err, fs.ErrExist) || fault.From(err).Hint == "" {
		t.Errorf("over a file that is there: %v", err)
	}
	if err := db.CopyTo(t.Context(), filepath.Join(dir, "nowhere", "b.sqlite")); !errors.Is(err, sqlitedb.Unusable) || fault.From(err).Hint == "" {
		t.Errorf("into no directory: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	half := filepath.Join(dir, "half.sqlite")
	if err := db.CopyTo(ended, half); err == nil {
		t.Error("a copy was made after its context had ended")
	}
	if _, err := os.Stat(half); err == nil {
		t.Error("a copy that failed left its file")
	}
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte("zanzibarium")) {
		t.Errorf("%v, or what was deleted is in the copy", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	b, err := sqlitedb.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var n int
	if err := b.Read(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Row(t.Context(), "SELECT count(*) FROM t WHERE v = 'kept'", nil, &n)
		return err
	}); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}
