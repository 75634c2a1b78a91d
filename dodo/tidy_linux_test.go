package main

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"localmcp/dodo/internal/door/surface"
	"localmcp/internal/sqlitedb"
)

// TestTidyWithoutChanges: a backup that has had its time goes also where nobody changes
// anything any more.
func TestTidyWithoutChanges(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	c := m.speak("legacy", dir)
	c.fine("edit_file", `"path":"a.txt","edits":[{"find":"two","replace":"2"}]`)
	c.CloseInput()
	p := &program{env: m.Env()}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	defer in.close(log)
	count := func() (n int) {
		t.Helper()
		err := in.store.Read(t.Context(), func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Row(ctx, "SELECT count(*) FROM backups", nil, &n)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if count() == 0 {
		t.Fatal("there is no backup")
	}
	err = in.store.Write(t.Context(), func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "UPDATE backups SET used = used - ?", (8 * 24 * 60 * 60 * 1000))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := in.serve(t.Context(), opening{root: dir, surface: surface.Full, log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d backups are left", n)
	}
	if err := s.end(t.Context()); err != nil {
		t.Error(err)
	}
}
