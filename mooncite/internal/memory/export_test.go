package memory

import (
	"context"
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
