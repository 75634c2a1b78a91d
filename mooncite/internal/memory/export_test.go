package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"localmcp/internal/sqlitedb"
)

// Limit bounds the pages that the database may have, as a full disk does.
func (s *Store) Limit(t testing.TB, pages int) {
	t.Helper()
	if err := s.write(t.Context(), func(ctx context.Context, c *sqlitedb.Conn) error {
		var n int
		_, err := c.Row(ctx, fmt.Sprintf("PRAGMA max_page_count=%d", pages), nil, &n)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Check holds the database against its invariants, on a connection of its own, as
// opening it does.
func (s *Store) Check(t testing.TB) {
	t.Helper()
	other := New(s.dir, s.program, s.evidence, nil)
	_, err := other.open(t.Context(), true)
	if err = errors.Join(err, other.Close()); err != nil {
		t.Fatal(err)
	}
}
