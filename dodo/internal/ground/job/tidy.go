package job

import (
	"context"
	"fmt"
	"time"

	"localmcp/internal/sqlitedb"
)

// reconcile marks the jobs of this workspace whose process is gone, and removes what crashed
// processes left: scripts, and output without a job.
func (s *Service) reconcile(ctx context.Context) error {
	names, err := s.spools.list() // before the rows: a row is there before its directory
	if err != nil {
		return fmt.Errorf("list the directories of jobs: %w", err)
	}
	running, err := s.rows(ctx, "workspace = ? AND status = 'running' AND process != ?", s.WorkspaceID, s.process)
	if err != nil {
		return err
	}
	for _, r := range running {
		if _, err := s.settled(ctx, r); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	status := map[string]Status{}
	if err := s.State.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT id, status FROM jobs", nil, func(row func(...any) error) error {
			var id string
			var st Status
			err := row(&id, &st)
			status[id] = st
			return err
		})
	}); err != nil {
		return err
	}
	for _, id := range names {
		switch st, known := status[id]; {
		case !known:
			if err := s.spools.remove(id); err != nil {
				return fmt.Errorf("remove what a job left: %w", err)
			}
		case st != Running:
			s.spools.removeScript(id)
		}
	}
	return nil
}

// trim removes the output of the oldest jobs that are over until the rest keeps to the limit.
func (s *Service) trim(ctx context.Context) {
	if err := s.trimTo(ctx, int64(s.Limits.JobLogBytesTotal)); err != nil {
		s.Log.Error("output of old jobs could not be removed", "cause", err)
	}
}

func (s *Service) trimTo(ctx context.Context, most int64) error {
	type old struct {
		id   string
		kept int64
	}
	var list []old
	total := int64(0)
	err := s.State.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		list, total = nil, 0
		return c.Each(ctx, "SELECT id, kept FROM jobs WHERE kept > 0 AND status != 'running' ORDER BY ended, seq", nil, func(row func(...any) error) error {
			var o old
			err := row(&o.id, &o.kept)
			list, total = append(list, o), total+o.kept
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, o := range list {
		if total <= most {
			break
		}
		if err := s.spools.remove(o.id); err != nil {
			return err
		}
		if err := s.State.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Exec(ctx, "UPDATE jobs SET kept = 0 WHERE id = ?", o.id)
			return err
		}); err != nil {
			return err
		}
		total -= o.kept
	}
	return nil
}

// tidySlice is how many rows one transaction removes: others write in between.
const tidySlice = 200

// Tidy forgets jobs that are older than they need be kept, with their output, and what could
// not be written down before. It looks at the jobs of the whole installation.
func (s *Service) Tidy(ctx context.Context) error {
	if err := s.save(ctx); err != nil {
		return err
	}
	// A job answers for its idempotency key, too.
	keep := max(time.Duration(s.Limits.AuditRetentionDays)*24*time.Hour, time.Duration(s.Limits.IdempotencyRetentionMs)*time.Millisecond)
	before := s.Now().Add(-keep).UnixMilli()
	for more := true; more; {
		var ids []string
		err := s.State.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			ids = nil
			return c.Each(ctx, "SELECT id FROM jobs WHERE created < ? AND status != 'running' ORDER BY created LIMIT ?", []any{before, tidySlice},
				func(row func(...any) error) error {
					var id string
					err := row(&id)
					ids = append(ids, id)
					return err
				})
		})
		if err != nil {
			return err
		}
		more = len(ids) == tidySlice
		if len(ids) == 0 {
			break
		}
		for _, id := range ids { // first: a directory without a row is found again
			if err := s.spools.remove(id); err != nil {
				return fmt.Errorf("remove the output of a job: %w", err)
			}
		}
		if err := s.State.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			for _, id := range ids {
				if _, err := c.Exec(ctx, "DELETE FROM jobs WHERE id = ?", id); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return s.trimTo(ctx, int64(s.Limits.JobLogBytesTotal))
}
