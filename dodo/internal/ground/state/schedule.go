package state

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// ScheduleStatus is how far a schedule is.
type ScheduleStatus string

// The statuses. A pending, approved or paused one past its expiry reads as expired.
const (
	SchedulePending  ScheduleStatus = "pending"
	ScheduleApproved ScheduleStatus = "approved"
	SchedulePaused   ScheduleStatus = "paused"
	ScheduleRevoked  ScheduleStatus = "revoked"
	ScheduleExpired  ScheduleStatus = "expired"
)

// A Schedule is a command that the clock starts, once the owner has approved its digest.
type Schedule struct {
	ID, Workspace    string
	Payload          json.RawMessage // what runs, when, where and for whom; it never changes
	Digest           string          // of Payload
	Status           ScheduleStatus
	Reason           string // why it is paused
	Policy           string // digest of the rules under which it was approved
	Created, Expires time.Time
	Next             time.Time // when it is due; zero for never
	Approved         time.Time // zero before
}

const scheduleColumns = "id, workspace, payload, digest, status, reason, policy, created, expires, coalesce(next, 0), coalesce(approved, 0)"

func (s *Store) scanSchedule(scan scanner) (x Schedule, err error) {
	var payload string
	var created, expires, next, approved int64
	err = scan(&x.ID, &x.Workspace, &payload, &x.Digest, &x.Status, &x.Reason, &x.Policy, &created, &expires, &next, &approved)
	x.Payload, x.Created, x.Expires = json.RawMessage(payload), timeOf(created), timeOf(expires)
	if next != 0 {
		x.Next = timeOf(next)
	}
	if approved != 0 {
		x.Approved = timeOf(approved)
	}
	if x.Status != ScheduleRevoked && expires <= s.stamp() {
		x.Status, x.Next = ScheduleExpired, time.Time{}
	}
	return x, err
}

// orNull is a time as it is stored.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// AddSchedule keeps a new one as pending, unless there is no room beside those of the workspace
// that are open: what room says then.
func (s *Store) AddSchedule(ctx context.Context, x Schedule, room func(open []Schedule) error) error {
	return s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		list, err := s.schedules(ctx, c, x.Workspace, false)
		if err == nil {
			err = room(list)
		}
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, `INSERT INTO schedules (id, workspace, payload, digest, status, reason, policy, created, expires) VALUES (?, ?, ?, ?, 'pending', '', '', ?, ?)`,
			x.ID, x.Workspace, string(x.Payload), x.Digest, s.stamp(), x.Expires.UnixMilli())
		return err
	})
}

// Schedule is the one of an id, in whichever workspace; NOT_FOUND when there is none.
func (s *Store) Schedule(ctx context.Context, id string) (x Schedule, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		x, err = s.schedule(ctx, c, id)
		return err
	})
	return x, err
}

func (s *Store) schedule(ctx context.Context, c *sqlitedb.Conn, id string) (x Schedule, err error) {
	found := false
	err = c.Each(ctx, "SELECT "+scheduleColumns+" FROM schedules WHERE id = ?", []any{id}, func(scan scanner) error {
		found = true
		x, err = s.scanSchedule(scan)
		return err
	})
	if err == nil && !found {
		err = fault.New(contract.NotFound, "no schedule has that id").WithHint("`dodo schedule list --all` lists those of a workspace")
	}
	return x, err
}

// Schedules are those of a workspace, the newest first; with ended, also what was revoked or
// expired.
func (s *Store) Schedules(ctx context.Context, workspace string, ended bool) (list []Schedule, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		list, err = s.schedules(ctx, c, workspace, ended)
		return err
	})
	return list, err
}

func (s *Store) schedules(ctx context.Context, c *sqlitedb.Conn, workspace string, ended bool) (list []Schedule, err error) {
	where, args := "workspace = ?", []any{workspace}
	if !ended {
		where, args = where+" AND status != 'revoked' AND expires > ?", append(args, s.stamp())
	}
	err = c.Each(ctx, "SELECT "+scheduleColumns+" FROM schedules WHERE "+where+" ORDER BY created DESC, id", args, func(scan scanner) error {
		x, err := s.scanSchedule(scan)
		list = append(list, x)
		return err
	})
	return list, err
}

// A ScheduleApproval is what the owner says yes to.
type ScheduleApproval struct {
	ID     string
	Digest string // of what was shown
	Policy string // digest of the rules as they are
	Next   time.Time
	Resume bool // only one that is paused
}

// ApproveSchedule is the owner's yes to exactly what a digest is of, under the rules as they
// are. Saved trust must be trusted, whatever the access mode: FORBIDDEN. Another digest is
// CONFLICT, and so is a schedule that ended.
func (s *Store) ApproveSchedule(ctx context.Context, a ScheduleApproval) (Schedule, error) {
	d := scheduleDecision{id: a.ID, to: ScheduleApproved, act: "owner.schedule.approve", from: []ScheduleStatus{SchedulePending, SchedulePaused, ScheduleApproved}}
	if a.Resume {
		d.act, d.from = "owner.schedule.resume", []ScheduleStatus{SchedulePaused}
	}
	d.change = func(ctx context.Context, c *sqlitedb.Conn, x *Schedule) error {
		w, found, err := findWorkspace(ctx, c, x.Workspace)
		switch {
		case err != nil:
			return err
		case a.Digest != x.Digest:
			return fault.New(contract.Conflict, "the digest is not that of the schedule").WithHint("look at it again: dodo schedule show %s", x.ID)
		case !found || w.Trust != contract.TrustTrusted:
			return NotTrusted(w.Trust)
		}
		x.Reason, x.Policy, x.Next, x.Approved = "", a.Policy, a.Next, timeOf(s.stamp())
		return nil
	}
	return s.decideSchedule(ctx, d)
}

// NotTrusted is the fault of a schedule in a workspace whose saved trust is not enough.
func NotTrusted(t contract.Trust) *fault.Error {
	if t == "" {
		t = contract.TrustInspect
	}
	return fault.New(contract.Forbidden, "the workspace's saved trust is %s, and scheduled commands need trusted", t).
		WithHint("the owner can set it there with `dodo trust --mode trusted`; personal access does not count here")
}

// PauseSchedule stops an approved one until it is approved again. What it started goes on.
func (s *Store) PauseSchedule(ctx context.Context, id string) (Schedule, error) {
	return s.decideSchedule(ctx, scheduleDecision{
		id: id, to: SchedulePaused, act: "owner.schedule.pause", from: []ScheduleStatus{ScheduleApproved},
		change: func(_ context.Context, _ *sqlitedb.Conn, x *Schedule) error {
			x.Reason, x.Next = "the owner paused it", time.Time{}
			return nil
		},
	})
}

// RevokeSchedule ends one for good. What it started is ended by the server that started it.
func (s *Store) RevokeSchedule(ctx context.Context, id string) (Schedule, error) {
	return s.decideSchedule(ctx, scheduleDecision{
		id: id, to: ScheduleRevoked, act: "owner.schedule.revoke", from: []ScheduleStatus{SchedulePending, ScheduleApproved, SchedulePaused, ScheduleExpired},
		change: func(_ context.Context, _ *sqlitedb.Conn, x *Schedule) error {
			x.Reason, x.Next = "", time.Time{}
			return nil
		},
	})
}

// A scheduleDecision is an act of the owner on a schedule that has one of some statuses.
type scheduleDecision struct {
	id, act string
	from    []ScheduleStatus
	to      ScheduleStatus
	change  func(context.Context, *sqlitedb.Conn, *Schedule) error
}

// decideSchedule does it. What is so already is no fault.
func (s *Store) decideSchedule(ctx context.Context, d scheduleDecision) (x Schedule, err error) {
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		if x, err = s.schedule(ctx, c, d.id); err != nil {
			return err
		}
		if !slices.Contains(d.from, x.Status) {
			if x.Status == d.to {
				return nil
			}
			return fault.New(contract.Conflict, "the schedule is %s", x.Status).WithHint("`dodo schedule show %s` tells more", d.id)
		}
		if err := d.change(ctx, c, &x); err != nil {
			return err
		}
		x.Status = d.to
		if _, err := c.Exec(ctx, "UPDATE schedules SET status = ?, reason = ?, policy = ?, next = ?, approved = ? WHERE id = ?",
			string(x.Status), x.Reason, x.Policy, orNull(x.Next), orNull(x.Approved), d.id); err != nil {
			return err
		}
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: x.Workspace, Tool: d.act, Ref: d.id, Result: ResultOK})
	})
	return x, err
}
