package state

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/sqlitedb"
)

// RunStatus is what became of a time at which a schedule was due.
type RunStatus string

// The statuses of runs. Claimed and launched ones are open.
const (
	RunClaimed   RunStatus = "claimed"  // it is this process's, and nothing was started yet
	RunLaunched  RunStatus = "launched" // its job runs
	RunEnded     RunStatus = "ended"    // its job is over, however it ended
	RunCancelled RunStatus = "cancelled"
	RunSkipped   RunStatus = "skipped"
	RunFailed    RunStatus = "failed"    // nothing was started
	RunUncertain RunStatus = "uncertain" // the process that claimed it is gone: nobody knows
)

// A Run is a time at which a schedule was due, and what became of it.
type Run struct {
	Schedule     string
	Due          time.Time
	Status       RunStatus
	Reason       string // why it was skipped, or what failed
	Job          string
	Taken, Ended time.Time // Ended is zero while it is open
}

const runColumns = "schedule, due, status, reason, job, taken, coalesce(ended, 0)"

func scanRun(more ...any) func(scan scanner) (Run, error) {
	return func(scan scanner) (r Run, err error) {
		var due, taken, ended int64
		err = scan(append([]any{&r.Schedule, &due, &r.Status, &r.Reason, &r.Job, &taken, &ended}, more...)...)
		r.Due, r.Taken = timeOf(due), timeOf(taken)
		if ended != 0 {
			r.Ended = timeOf(ended)
		}
		return r, err
	}
}

// Runs are the last limit of a workspace, or of one schedule when it is named, the newest
// first.
func (s *Store) Runs(ctx context.Context, workspace, schedule string, limit int) (list []Run, err error) {
	query, args := "SELECT "+runColumns+" FROM schedule_runs WHERE schedule IN (SELECT id FROM schedules WHERE workspace = ?) ORDER BY taken DESC, due DESC LIMIT ?",
		[]any{workspace, limit}
	if schedule != "" {
		query, args = "SELECT "+runColumns+" FROM schedule_runs WHERE schedule = ? ORDER BY due DESC LIMIT ?", []any{schedule, limit}
	}
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, query, args, func(scan scanner) error {
			r, err := scanRun()(scan)
			list = append(list, r)
			return err
		})
	})
	return list, err
}

// An OpenRun is one that was claimed or launched.
type OpenRun struct {
	Run
	Mine    bool // this process took it
	Gone    bool // the process that took it is gone, and its job with it
	Revoked bool // its schedule was revoked since
}

// Clockwork is what a workspace's scheduler must look at now.
type Clockwork struct {
	Open    []OpenRun
	Due     []Schedule // approved, and due by now
	Expired int        // how many ended by time and do not say so yet
}

// Clockwork reads it in one state of the database.
func (s *Store) Clockwork(ctx context.Context, workspace string) (w Clockwork, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return w, err
	}
	var processes []string
	now := s.stamp()
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		var process, status string
		scan := scanRun(&process, &status)
		if err := c.Each(ctx, "SELECT r.schedule, r.due, r.status, r.reason, r.job, r.taken, 0, r.process, s.status FROM schedule_runs r JOIN schedules s ON s.id = r.schedule "+
			"WHERE s.workspace = ? AND r.status IN ('claimed', 'launched') ORDER BY r.due", []any{workspace}, func(row scanner) error {
			r, err := scan(row)
			w.Open = append(w.Open, OpenRun{Run: r, Mine: process == me, Revoked: status == string(ScheduleRevoked)})
			processes = append(processes, process)
			return err
		}); err != nil {
			return err
		}
		if err := c.Each(ctx, "SELECT "+scheduleColumns+" FROM schedules WHERE workspace = ? AND status = 'approved' AND next <= ? AND expires > ? ORDER BY next, id",
			[]any{workspace, now, now}, func(row scanner) error {
				x, err := s.scanSchedule(row)
				w.Due = append(w.Due, x)
				return err
			}); err != nil {
			return err
		}
		_, err := c.Row(ctx, "SELECT count(*) FROM schedules WHERE workspace = ? AND status IN ('pending', 'approved', 'paused') AND expires <= ?", []any{workspace, now}, &w.Expired)
		return err
	})
	for i, process := range processes {
		if err == nil && !w.Open[i].Mine {
			var runs bool
			runs, err = s.alive(process)
			w.Open[i].Gone = !runs
		}
	}
	return w, err
}

// ExpireSchedules writes down that the time of some is over.
func (s *Store) ExpireSchedules(ctx context.Context, workspace string) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, "UPDATE schedules SET status = 'expired', next = NULL WHERE workspace = ? AND status IN ('pending', 'approved', 'paused') AND expires <= ?",
			workspace, s.stamp())
		return err
	})
}

// A Taking uses a time at which a schedule is due.
type Taking struct {
	Schedule, Workspace string
	Due                 time.Time
	Next                time.Time // when it is due again; zero for never
	Skip                string    // why nothing is started; empty claims the time
	Pause               bool      // and for the same reason nothing more
}

// TakeRun uses the time and sets the next in one transaction, before anything is started. It
// is false when the schedule is not approved, not due then or expired, when another process
// was first, and, for a claim, when saved trust is not trusted any more.
func (s *Store) TakeRun(ctx context.Context, t Taking) (taken bool, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return false, err
	}
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		now, due := s.stamp(), t.Due.UnixMilli()
		trust := ""
		if t.Skip == "" {
			trust = string(contract.TrustTrusted)
		}
		n, err := exec(ctx, c, `UPDATE schedules SET next = ? WHERE id = ? AND workspace = ? AND status = 'approved' AND next = ? AND expires > ?
			AND (? = '' OR EXISTS (SELECT 1 FROM workspaces w WHERE w.id = workspace AND w.trust = ?))`,
			orNull(t.Next), t.Schedule, t.Workspace, due, now, trust, trust)
		if taken = n == 1; err != nil || !taken {
			return err
		}
		status, ended := RunClaimed, any(nil)
		if t.Skip != "" {
			status, ended = RunSkipped, now
		}
		// A clock that was set back comes to a time again that was used before.
		n, err = exec(ctx, c, "INSERT OR IGNORE INTO schedule_runs (schedule, due, status, reason, job, process, taken, ended) VALUES (?, ?, ?, ?, '', ?, ?, ?)",
			t.Schedule, due, string(status), t.Skip, me, now, ended)
		if taken = n == 1; err != nil || !t.Pause {
			return err
		}
		if _, err := c.Exec(ctx, "UPDATE schedules SET status = 'paused', reason = ?, next = NULL WHERE id = ?", t.Skip, t.Schedule); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalDodo, Workspace: t.Workspace, Tool: "schedule.pause", Ref: t.Schedule, Result: ResultOK})
	})
	return taken && err == nil, err
}

// SettleRun notes what became of a run that had another status; false when it does not have
// that any more. What is launched, and what could not be, is in the audit too.
func (s *Store) SettleRun(ctx context.Context, workspace string, from RunStatus, r Run) (settled bool, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		ended := any(s.stamp())
		if r.Status == RunLaunched {
			ended = nil
		}
		n, err := exec(ctx, c, `UPDATE schedule_runs SET status = ?, reason = ?, job = ?, ended = ? WHERE schedule = ? AND due = ? AND status = ?`,
			string(r.Status), r.Reason, r.Job, ended, r.Schedule, r.Due.UnixMilli(), string(from))
		if settled = n == 1; err != nil || !settled {
			return err
		}
		e := Event{Principal: PrincipalDodo, Workspace: workspace, Tool: "schedule.run", Ref: r.Job, Result: ResultOK}
		switch r.Status {
		case RunLaunched:
		case RunFailed, RunUncertain, RunCancelled:
			e.Ref, e.Result = r.Schedule, string(r.Status)
		default:
			return nil
		}
		return s.append(ctx, c, e)
	})
	return settled && err == nil, err
}

// pruneSchedules removes those that ended long ago, with their runs.
func pruneSchedules(ctx context.Context, c *sqlitedb.Conn, before int64) (int64, error) {
	return exec(ctx, c, `DELETE FROM schedules WHERE id IN (SELECT id FROM schedules WHERE expires < ? AND id NOT IN
		(SELECT schedule FROM schedule_runs WHERE status IN ('claimed', 'launched')) LIMIT ?)`, before, pruneSlice)
}

// pruneRuns removes what happened long ago.
func pruneRuns(ctx context.Context, c *sqlitedb.Conn, before int64) (int64, error) {
	return exec(ctx, c, `DELETE FROM schedule_runs WHERE (schedule, due) IN
		(SELECT schedule, due FROM schedule_runs WHERE taken < ? AND status NOT IN ('claimed', 'launched') LIMIT ?)`, before, pruneSlice)
}
