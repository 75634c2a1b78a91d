package change

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// Kind says how a changeset came to be.
type Kind string

// The kinds.
const (
	KindApply    Kind = "apply"
	KindRollback Kind = "rollback"
)

// Status says how far a changeset is.
type Status string

// The statuses. Committing is also what a process leaves that dies on the way; the next one
// to take the workspace's turn gives it another.
const (
	Committing       Status = "committing"
	Committed        Status = "committed"
	Failed           Status = "failed" // nothing of it is in effect
	RolledBack       Status = "rolled_back"
	RecoveryRequired Status = "recovery_required" // the owner decides
)

// A Changeset is an entry of the history.
type Changeset struct {
	ID, PlanID string
	Kind       Kind
	Status     Status
	Principal  string // the grant whose change it is
	Summary    string
	Undoes     string // of a rollback: the changeset it took back
	Error      string // code of the failure; empty when there was none
	Created    time.Time
	Committed  time.Time // zero until then
	Files      []ChangedFile
}

// A ChangedFile is one line of a changeset's journal.
type ChangedFile struct {
	Action     Action
	Path, Dest string
	BeforeHash string
	AfterHash  string
}

// journal holds the queries of the tables changesets and journal_steps.
type journal struct {
	store     *state.Store
	workspace string
	now       func() time.Time
}

// entry is a changeset with its steps, as apply and recovery use it.
type entry struct {
	Changeset
	steps []step
	swept bool     // no stage of it is left
	left  []string // directories that were to go and have something in them
}

// begin makes the intent durable: the changeset, its steps and the backups, in one commit.
// swept are changesets whose stages are gone, which it notes on the way.
func (j *journal) begin(ctx context.Context, e *entry, epoch string, keep func(context.Context, *sqlitedb.Conn) error, swept []string) error {
	return j.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := keep(ctx, c); err != nil {
			return err
		}
		for _, id := range swept {
			if _, err := c.Exec(ctx, "UPDATE changesets SET swept = 1 WHERE id = ?", id); err != nil {
				return err
			}
		}
		_, err := c.Exec(ctx, `INSERT INTO changesets (id, workspace, epoch, principal, plan, kind, status, undoes, summary, created, swept)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
			e.ID, j.workspace, epoch, e.Principal, e.PlanID, string(e.Kind), string(Committing), orNull(e.Undoes), e.Summary, e.Created.UnixMilli())
		if err != nil {
			return err
		}
		for _, s := range e.steps {
			_, err := c.Exec(ctx, `INSERT INTO journal_steps (changeset, seq, action, path, dest, before_hash, after_hash, mode, stage)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				e.ID, s.seq, string(s.action), s.path, orNull(s.dest), orNull(s.before), orNull(s.after), s.mode, orNull(s.stage))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// commit makes a change count: its plan is used, and what it took back is rolled back.
func (j *journal) commit(ctx context.Context, e *entry) error {
	now := j.now()
	err := j.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if _, err := c.Exec(ctx, "UPDATE changesets SET status = ?, error = NULL, ended = ? WHERE id = ?", string(Committed), now.UnixMilli(), e.ID); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, "UPDATE plans SET used = ? WHERE id = ?", now.UnixMilli(), e.PlanID); err != nil {
			return err
		}
		return takenBack(ctx, c, e.Undoes)
	})
	if err == nil {
		e.Status, e.Committed = Committed, now
	}
	return err
}

// takenBack marks the changeset id as rolled back. One that had taken back another brings that
// one into effect again, and so on down the chain, as far as the history still reaches.
func takenBack(ctx context.Context, c *sqlitedb.Conn, id string) error {
	for status := RolledBack; id != ""; {
		if err := setStatus(ctx, c, id, status, ""); err != nil {
			return err
		}
		there, err := c.Row(ctx, "SELECT coalesce(undoes, '') FROM changesets WHERE id = ?", []any{id}, &id)
		if err != nil || !there {
			return err
		}
		if status == RolledBack {
			status = Committed
		} else {
			status = RolledBack
		}
	}
	return nil
}

func setStatus(ctx context.Context, c *sqlitedb.Conn, id string, s Status, code string) error {
	_, err := c.Exec(ctx, "UPDATE changesets SET status = ?, error = ? WHERE id = ?", string(s), orNull(code), id)
	return err
}

// end gives a change that was not committed its status.
func (j *journal) end(ctx context.Context, e *entry, s Status, code fault.Code, swept bool) error {
	err := j.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		if err := setStatus(ctx, c, e.ID, s, string(code)); err != nil {
			return err
		}
		_, err := c.Exec(ctx, "UPDATE changesets SET swept = ? WHERE id = ?", swept, e.ID)
		return err
	})
	if err == nil {
		e.Status, e.swept = s, swept
	}
	return err
}

// markSwept notes that no stage of a change is left.
func (j *journal) markSwept(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return j.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		for _, id := range ids {
			if _, err := c.Exec(ctx, "UPDATE changesets SET swept = 1 WHERE id = ?", id); err != nil {
				return err
			}
		}
		return nil
	})
}

const entryColumns = "id, principal, coalesce(plan, ''), kind, status, coalesce(undoes, ''), summary, created, coalesce(ended, 0), coalesce(error, ''), swept"

func scanEntry(scan func(...any) error) (*entry, error) {
	var e entry
	var kind, status string
	var created, ended int64
	if err := scan(&e.ID, &e.Principal, &e.PlanID, &kind, &status, &e.Undoes, &e.Summary, &created, &ended, &e.Error, &e.swept); err != nil {
		return nil, err
	}
	e.Kind, e.Status, e.Created = Kind(kind), Status(status), time.UnixMilli(created).UTC()
	if ended != 0 {
		e.Committed = time.UnixMilli(ended).UTC()
	}
	return &e, nil
}

func (j *journal) entries(ctx context.Context, where string, args ...any) ([]*entry, error) {
	return j.entriesBut(ctx, func(string) bool { return false }, where, args...)
}

// entriesBut reads no steps of the committed changesets that bare names.
func (j *journal) entriesBut(ctx context.Context, bare func(id string) bool, where string, args ...any) ([]*entry, error) {
	var list []*entry
	err := j.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		rows, err := c.Query(ctx, "SELECT "+entryColumns+" FROM changesets WHERE "+where, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			e, err := scanEntry(rows.Scan)
			if err != nil {
				return err
			}
			list = append(list, e)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		for _, e := range list {
			if e.Status == Committed && bare(e.ID) {
				continue
			}
			if e.steps, err = steps(ctx, c, e.ID); err != nil {
				return err
			}
			for _, s := range e.steps {
				e.Files = append(e.Files, ChangedFile{s.action, s.path, s.dest, s.before, s.after})
			}
		}
		return nil
	})
	return list, err
}

func steps(ctx context.Context, c *sqlitedb.Conn, id string) ([]step, error) {
	rows, err := c.Query(ctx, `SELECT seq, action, path, coalesce(dest, ''), coalesce(before_hash, ''), coalesce(after_hash, ''), mode, coalesce(stage, '')
		FROM journal_steps WHERE changeset = ? ORDER BY seq`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []step
	for rows.Next() {
		var s step
		var action string
		if err := rows.Scan(&s.seq, &action, &s.path, &s.dest, &s.before, &s.after, &s.mode, &s.stage); err != nil {
			return nil, err
		}
		s.action = Action(action)
		list = append(list, s)
	}
	return list, rows.Err()
}

// loose are the changes that whoever has the turn must look at first: those of processes
// that died on the way, those that wait for the owner, and those whose stages may be left.
// Those of which the caller knows that they are swept come without their steps.
func (j *journal) loose(ctx context.Context, swept func(id string) bool) ([]*entry, error) {
	return j.entriesBut(ctx, swept, "workspace = ? AND (status IN ('committing', 'recovery_required') OR swept = 0) ORDER BY seq", j.workspace)
}

// find returns a changeset of this workspace. An unknown one gives NOT_FOUND.
func (j *journal) find(ctx context.Context, id string) (*entry, error) {
	list, err := j.entries(ctx, "workspace = ? AND id = ?", j.workspace, id)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fault.New(contract.NotFound, "this workspace has no change with this id").
			WithHint("change_history lists them").With("changesetId", id)
	}
	return list[0], nil
}

// workspaceOf is the id of the workspace that a changeset is of.
func (j *journal) workspaceOf(ctx context.Context, id string) (workspace string, err error) {
	err = j.store.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Row(ctx, "SELECT workspace FROM changesets WHERE id = ?", []any{id}, &workspace)
		return err
	})
	return workspace, err
}

// historyRetention is how long the history reaches back.
const historyRetention = 30 * 24 * time.Hour

// prune forgets changes that are older than the history reaches and wait for nobody.
func (j *journal) prune(ctx context.Context) error {
	for {
		var gone int64
		err := j.store.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			r, err := c.Exec(ctx, `DELETE FROM changesets WHERE seq IN (SELECT seq FROM changesets
				WHERE created < ? AND swept = 1 AND status NOT IN ('committing', 'recovery_required') ORDER BY seq LIMIT ?)`,
				j.now().Add(-historyRetention).UnixMilli(), pruneSlice)
			if err != nil {
				return err
			}
			gone, err = r.RowsAffected()
			return err
		})
		if err != nil || gone < pruneSlice {
			return err
		}
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
