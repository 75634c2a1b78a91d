package state

import (
	"context"
	"time"

	"localmcp/internal/sqlitedb"
)

// Retention is how long rows are kept.
type Retention struct {
	Audit       time.Duration // audit rows, approvals that were answered or ended, schedules that ended, and their runs, logins that ended
	Idempotency time.Duration
}

// pruneSlice is how many rows one transaction removes: others write in between.
const pruneSlice = 500

// Prune removes what is older than it need be, and previews of questions that ended, in small
// slices. The last audit row that
// goes leaves its hash as the anchor of the chain.
func (s *Store) Prune(ctx context.Context, r Retention) error {
	now := s.stamp()
	audit, keys := now-r.Audit.Milliseconds(), now-r.Idempotency.Milliseconds()
	for _, slice := range []func(context.Context, *sqlitedb.Conn) (int64, error){
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) { return pruneAudit(ctx, c, audit) },
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) {
			return exec(ctx, c, "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE created < ? AND expires < ? LIMIT ?)", audit, now, pruneSlice)
		},
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) {
			return exec(ctx, c, `UPDATE approvals SET detail = NULL WHERE id IN
				(SELECT id FROM approvals WHERE detail IS NOT NULL AND expires < ? LIMIT ?)`, now, pruneSlice)
		},
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) { return pruneSchedules(ctx, c, audit) },
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) { return pruneRuns(ctx, c, audit) },
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) { return pruneClients(ctx, c, now) },
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) { return pruneLogins(ctx, c, now, audit) },
		func(ctx context.Context, c *sqlitedb.Conn) (int64, error) {
			return exec(ctx, c, `DELETE FROM idempotency WHERE (key, principal, workspace, tool) IN
				(SELECT key, principal, workspace, tool FROM idempotency WHERE created < ? LIMIT ?)`, keys, pruneSlice)
		},
	} {
		for n := int64(pruneSlice); n == pruneSlice; {
			if err := s.write(ctx, s.quick, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
				n, err = slice(ctx, c)
				return err
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneAudit removes the oldest rows, but never one that stands behind a younger one: the
// clock may have been set back.
func pruneAudit(ctx context.Context, c *sqlitedb.Conn, before int64) (int64, error) {
	var last int64
	var hash []byte
	found, err := c.Row(ctx, `SELECT id, hash FROM (SELECT id, hash FROM audit
		WHERE id < coalesce((SELECT min(id) FROM audit WHERE at >= ?), 9223372036854775807) ORDER BY id LIMIT ?) ORDER BY id DESC LIMIT 1`,
		[]any{before, pruneSlice}, &last, &hash)
	if err != nil || !found {
		return 0, err
	}
	if _, err := c.Exec(ctx, `UPDATE audit_ends SET id = ?, hash = ? WHERE "end" = 'anchor'`, last, hash); err != nil {
		return 0, err
	}
	return exec(ctx, c, "DELETE FROM audit WHERE id <= ?", last)
}
