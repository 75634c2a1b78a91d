package state

import (
	"context"
	"encoding/json"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// Todos is the list of a workspace; nil when none was written.
func (s *Store) Todos(ctx context.Context, workspace string) (list json.RawMessage, updated time.Time, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var text string
		var at int64
		found, err := c.Row(ctx, "SELECT list, updated FROM todos WHERE workspace = ?", []any{workspace}, &text, &at)
		if found {
			list, updated = json.RawMessage(text), timeOf(at)
		}
		return err
	})
	return list, updated, err
}

// SetTodos replaces the list.
func (s *Store) SetTodos(ctx context.Context, workspace string, list json.RawMessage) (updated time.Time, err error) {
	now := s.stamp()
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO todos VALUES (?, ?, ?) ON CONFLICT (workspace) DO UPDATE SET list = excluded.list, updated = excluded.updated",
			workspace, string(list), now)
		return err
	})
	return timeOf(now), err
}

// A Handoff is a note from one session to the next.
type Handoff struct {
	ID      string
	Created time.Time
	Content json.RawMessage
}

// MostHandoffs is how many notes of a workspace are kept.
const MostHandoffs = 200

// AddHandoff keeps one, and the newest before it, up to MostHandoffs.
func (s *Store) AddHandoff(ctx context.Context, workspace, principal string, content json.RawMessage) (h Handoff, err error) {
	now := s.stamp()
	h = Handoff{ID: contract.NewID(contract.PrefixHandoff, 0), Created: timeOf(now), Content: content}
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, err := c.Exec(ctx, `DELETE FROM handoffs WHERE id IN
			(SELECT id FROM handoffs WHERE workspace = ? ORDER BY created DESC, id LIMIT -1 OFFSET ?)`, workspace, MostHandoffs-1); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "INSERT INTO handoffs VALUES (?, ?, ?, ?, ?)", h.ID, workspace, principal, string(content), now)
		return err
	})
	return h, err
}

// Handoffs are the last limit of a workspace, the newest first.
func (s *Store) Handoffs(ctx context.Context, workspace string, limit int) (list []Handoff, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT id, created, handoff FROM handoffs WHERE workspace = ? ORDER BY created DESC, id LIMIT ?",
			[]any{workspace, limit}, func(scan scanner) error {
				h, err := scanHandoff(scan)
				list = append(list, h)
				return err
			})
	})
	return list, err
}

// Handoff is the one of an id; NOT_FOUND when the workspace has none of it.
func (s *Store) Handoff(ctx context.Context, workspace, id string) (h Handoff, err error) {
	found := false
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT id, created, handoff FROM handoffs WHERE workspace = ? AND id = ?", []any{workspace, id}, func(scan scanner) error {
			found = true
			h, err = scanHandoff(scan)
			return err
		})
	})
	if err == nil && !found {
		err = fault.New(contract.NotFound, "no handoff of this workspace has that id").WithHint("handoff_read with list lists them")
	}
	return h, err
}

func scanHandoff(scan scanner) (h Handoff, err error) {
	var text string
	var at int64
	err = scan(&h.ID, &at, &text)
	h.Content, h.Created = json.RawMessage(text), timeOf(at)
	return h, err
}
