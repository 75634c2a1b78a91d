package sqlitedb

import (
	"context"
	"errors"
	"fmt"
)

// migrate brings the file to the newest version in one transaction. Another process
// may do the same at the same time: the second finds nothing left to do.
func (d *DB) migrate(ctx context.Context, c *Conn) error {
	current, err := d.snapshot(ctx, c)
	if err != nil || current > 0 && current == len(d.o.Migrations) {
		return err // the common case needs no lock; a new file still needs its mark
	}
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := d.step(ctx, c); err != nil {
		_ = c.exec(context.WithoutCancel(ctx), "ROLLBACK")
		return err
	}
	return c.exec(ctx, "COMMIT")
}

func (d *DB) step(ctx context.Context, c *Conn) error {
	from, err := d.version(ctx, c)
	if err != nil {
		return err
	}
	if err := c.exec(ctx, fmt.Sprintf("PRAGMA application_id=%d", int32(d.o.ApplicationID))); err != nil {
		return err
	}
	for i := from; i < len(d.o.Migrations); i++ {
		if err := c.exec(ctx, d.o.Migrations[i]); err != nil {
			return fmt.Errorf("migration %d: %w", i+1, err)
		}
	}
	return c.exec(ctx, fmt.Sprintf("PRAGMA user_version=%d", len(d.o.Migrations)))
}

// snapshot asks for the version in a transaction of its own, so that another process
// that makes the file meanwhile is seen wholly or not at all.
func (d *DB) snapshot(ctx context.Context, c *Conn) (int, error) {
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	v, err := d.version(ctx, c)
	return v, errors.Join(err, c.exec(context.WithoutCancel(ctx), "ROLLBACK"))
}

// version reads the version as SQLite sees it, with the log, and refuses what is not
// ours: the file may have changed since its header was judged. A new file gives 0.
// It runs inside a transaction.
func (d *DB) version(ctx context.Context, c *Conn) (int, error) {
	var objects, id, version int64
	for _, ask := range []struct {
		query string
		to    *int64
	}{
		{"SELECT count(*) FROM sqlite_schema", &objects}, // reads the schema, so damage shows
		{"PRAGMA application_id", &id},
		{"PRAGMA user_version", &version},
	} {
		if err := c.sql.QueryRowContext(ctx, ask.query).Scan(ask.to); err != nil {
			return 0, err
		}
	}
	switch {
	case objects == 0 && id == 0 && version == 0: // new: its header would have been refused otherwise
		return 0, nil
	case uint32(id) != d.o.ApplicationID:
		return 0, d.foreign()
	case version < 0 || version > int64(len(d.o.Migrations)):
		return 0, d.newer(int(version))
	}
	return int(version), nil
}
