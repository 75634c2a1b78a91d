package state

import (
	"context"
	"encoding/json"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// ApprovalStatus is how far a question to the owner is.
type ApprovalStatus string

// The statuses. A pending or approved one past its expiry reads as expired.
const (
	Pending  ApprovalStatus = "pending"
	Approved ApprovalStatus = "approved"
	Denied   ApprovalStatus = "denied"
	Consumed ApprovalStatus = "consumed"
	Expired  ApprovalStatus = "expired"
)

// A Question is a call that needs the owner's word.
type Question struct {
	Workspace, Epoch string
	Principal        string // id of the grant
	Tool             string // the operation itself, also when it came through a gateway
	Digest           string // of tool, arguments and policy version
	Summary          string // one line, without text from outside
	Detail           json.RawMessage
}

// An Approval is a question that was asked, and what became of it.
type Approval struct {
	ID string
	Question
	Status           ApprovalStatus
	Created, Expires time.Time
}

const approvalColumns = "id, workspace, epoch, principal, tool, digest, summary, coalesce(detail, ''), created, expires, status"

func (s *Store) scanApproval(scan scanner) (a Approval, err error) {
	var detail string
	var created, expires int64
	err = scan(&a.ID, &a.Workspace, &a.Epoch, &a.Principal, &a.Tool, &a.Digest, &a.Summary, &detail, &created, &expires, &a.Status)
	if detail != "" {
		a.Detail = json.RawMessage(detail)
	}
	a.Created, a.Expires = timeOf(created), timeOf(expires)
	if (a.Status == Pending || a.Status == Approved) && expires <= s.stamp() {
		a.Status = Expired
	}
	return a, err
}

// mostAsked is how many questions of one process may wait for the owner at a time: nobody
// reads more, and each keeps its preview.
const mostAsked = 100

// Consume uses the owner's approval of exactly this question, once, or asks for it. used
// means: go on. Otherwise the approval is pending, and how long it stays is ttl from the
// moment it was first asked. An approval that ended before it was used gives
// APPROVAL_EXPIRED (retryable): the next call asks anew. Approvals of an epoch that is over
// are denied. When too many questions wait already it is RESOURCE_LIMIT.
func (s *Store) Consume(ctx context.Context, q Question, ttl time.Duration) (a Approval, used bool, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return a, false, err
	}
	late := false
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := s.endOldEpochs(ctx, c, q, me); err != nil {
			return err
		}
		now := s.stamp()
		var found bool
		if a, found, err = s.asked(ctx, c, q); err != nil {
			return err
		}
		switch {
		case found && a.Status == Approved:
			n, err := exec(ctx, c, "UPDATE approvals SET status = 'consumed', consumed = ? WHERE id = ? AND status = 'approved' AND expires > ?", now, a.ID, now)
			used, a.Status = n == 1, Consumed
			return err
		case found && a.Status == Pending:
			return nil
		case found: // past its expiry
			n, err := exec(ctx, c, "UPDATE approvals SET status = 'expired' WHERE id = ? AND status = 'approved'", a.ID)
			if late = n == 1; err != nil || late {
				return err
			}
			if _, err := c.Exec(ctx, "UPDATE approvals SET status = 'expired' WHERE id = ?", a.ID); err != nil {
				return err
			}
		}
		if err := makeRoom(ctx, c, me, now); err != nil {
			return err
		}
		a = Approval{ID: contract.NewID(contract.PrefixApproval, 0), Question: q, Status: Pending, Created: timeOf(now), Expires: timeOf(now + ttl.Milliseconds())}
		var detail any
		if len(q.Detail) > 0 {
			detail = string(q.Detail)
		}
		_, err = c.Exec(ctx, `INSERT INTO approvals (id, workspace, epoch, process, principal, tool, digest, summary, detail, created, expires, status)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending')`,
			a.ID, q.Workspace, q.Epoch, me, q.Principal, q.Tool, q.Digest, q.Summary, detail, now, now+ttl.Milliseconds())
		return err
	})
	if err == nil && late {
		err = fault.New(contract.ApprovalExpired, "the approval ended before it was used").
			WithHint("repeat the call; it asks the owner anew").With("approvalId", a.ID).Retry()
	}
	return a, used, err
}

// makeRoom drops the previews of a process's questions that are over, which nobody is shown
// any more, and refuses another question while too many wait.
func makeRoom(ctx context.Context, c *sqlitedb.Conn, process string, now int64) error {
	if _, err := c.Exec(ctx, `UPDATE approvals SET detail = NULL WHERE process = ? AND detail IS NOT NULL
		AND (expires <= ? OR status NOT IN ('pending', 'approved'))`, process, now); err != nil {
		return err
	}
	var wait int
	if _, err := c.Row(ctx, "SELECT count(*) FROM approvals WHERE process = ? AND status = 'pending' AND expires > ?", []any{process, now}, &wait); err != nil {
		return err
	}
	if wait >= mostAsked {
		return fault.New(contract.ResourceLimit, "%d calls wait for the owner already", wait).
			WithHint("ask the owner to answer them: dodo pending, then dodo approve or dodo deny. What is not answered ends by itself").Retry()
	}
	return nil
}

// asked finds the question as it was asked in this epoch and not ended yet.
func (s *Store) asked(ctx context.Context, c *sqlitedb.Conn, q Question) (a Approval, found bool, err error) {
	err = c.Each(ctx, "SELECT "+approvalColumns+` FROM approvals WHERE workspace = ? AND principal = ? AND digest = ? AND tool = ? AND epoch = ?
		AND status IN ('pending', 'approved') ORDER BY created DESC LIMIT 1`,
		[]any{q.Workspace, q.Principal, q.Digest, q.Tool, q.Epoch}, func(scan scanner) error {
			found = true
			a, err = s.scanApproval(scan)
			return err
		})
	return a, found, err
}

// endOldEpochs denies what was asked for the same in another epoch, unless another process
// still lives in that epoch.
func (s *Store) endOldEpochs(ctx context.Context, c *sqlitedb.Conn, q Question, me string) error {
	old := map[string]string{} // id -> process
	if err := c.Each(ctx, `SELECT id, process FROM approvals WHERE workspace = ? AND principal = ? AND digest = ? AND epoch <> ?
		AND status IN ('pending', 'approved')`, []any{q.Workspace, q.Principal, q.Digest, q.Epoch}, func(scan scanner) error {
		var id, process string
		err := scan(&id, &process)
		old[id] = process
		return err
	}); err != nil {
		return err
	}
	for id, process := range old {
		if process != me {
			if runs, err := s.alive(process); err != nil {
				return err
			} else if runs {
				continue
			}
		}
		if _, err := c.Exec(ctx, "UPDATE approvals SET status = 'denied', decided = ? WHERE id = ?", s.stamp(), id); err != nil {
			return err
		}
	}
	return nil
}

// Approval is one question of a workspace; with a principal, only if that one asked.
// NOT_FOUND otherwise.
func (s *Store) Approval(ctx context.Context, workspace, principal, id string) (a Approval, err error) {
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		a, err = s.approval(ctx, c, workspace, id)
		return err
	})
	if err == nil && principal != "" && a.Principal != principal {
		return Approval{}, noApproval()
	}
	return a, err
}

func (s *Store) approval(ctx context.Context, c *sqlitedb.Conn, workspace, id string) (a Approval, err error) {
	found := false
	err = c.Each(ctx, "SELECT "+approvalColumns+" FROM approvals WHERE id = ? AND workspace = ?", []any{id, workspace}, func(scan scanner) error {
		found = true
		a, err = s.scanApproval(scan)
		return err
	})
	if err == nil && !found {
		err = noApproval()
	}
	return a, err
}

func noApproval() error {
	return fault.New(contract.NotFound, "no approval here has that id").WithHint("`dodo pending` lists what waits")
}

// PendingApprovals are the questions that this process asked and that wait, the oldest
// first.
func (s *Store) PendingApprovals(ctx context.Context) (list []Approval, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return nil, err
	}
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+approvalColumns+" FROM approvals WHERE process = ? AND status = 'pending' AND expires > ? ORDER BY created, id",
			[]any{me, s.stamp()}, func(scan scanner) error {
				a, err := s.scanApproval(scan)
				list = append(list, a)
				return err
			})
	})
	return list, err
}

// Asked is one question that this process asked, in whichever workspace; NOT_FOUND for
// others.
func (s *Store) Asked(ctx context.Context, id string) (a Approval, err error) {
	me, err := s.me(ctx)
	if err != nil {
		return a, err
	}
	found := false
	err = s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		return c.Each(ctx, "SELECT "+approvalColumns+" FROM approvals WHERE id = ? AND process = ?", []any{id, me}, func(scan scanner) error {
			found = true
			a, err = s.scanApproval(scan)
			return err
		})
	})
	if err == nil && !found {
		err = noApproval()
	}
	return a, err
}

// Decide is the owner's word on a question of a workspace. Only a pending one takes it:
// NOT_FOUND, APPROVAL_EXPIRED or CONFLICT otherwise. The same word again is no fault.
func (s *Store) Decide(ctx context.Context, workspace, id string, approve bool) (a Approval, err error) {
	to, tool := Denied, "owner.deny"
	if approve {
		to, tool = Approved, "owner.approve"
	}
	err = s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) (err error) {
		if a, err = s.approval(ctx, c, workspace, id); err != nil || a.Status == to {
			return err
		}
		switch a.Status {
		case Pending:
		case Expired:
			return fault.New(contract.ApprovalExpired, "the request ended before it was answered").WithHint("the client asks anew when it repeats the call")
		default:
			return fault.New(contract.Conflict, "the request was already answered: %s", a.Status).WithHint("nothing is left to answer")
		}
		now := s.stamp()
		if _, err = c.Exec(ctx, "UPDATE approvals SET status = ?, decided = ? WHERE id = ?", string(to), now, id); err != nil {
			return err
		}
		a.Status = to
		return s.append(ctx, c, Event{Principal: PrincipalOwner, Workspace: workspace, Tool: tool, Ref: id, Result: ResultOK})
	})
	return a, err
}
