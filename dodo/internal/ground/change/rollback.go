package change

import (
	"context"
	"errors"
	"slices"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// rollbackSource is the source of plans that take back a change.
const rollbackSource = "rollback_changes"

// RolledBackChange is what came of a rollback.
type RolledBackChange struct {
	ChangesetID string   // the rollback's own: it can be rolled back, too
	Restored    []string // paths
	Notes       []string // what the caller should be told
}

// Rollback takes a committed change back, by a change of its own: every file it wrote gets
// the bytes and the mode it had before, if it is still as the change left it. Otherwise
// nothing is touched: CONFLICT. A client may take back its own changes (FORBIDDEN), the
// owner any. A rollback can be taken back itself.
func (s *Service) Rollback(ctx context.Context, who contract.Principal, id string) (RolledBackChange, error) {
	o, err := s.undoOrder(ctx, who, id)
	if err != nil {
		return RolledBackChange{}, err
	}
	return s.runRollback(ctx, o)
}

func (s *Service) runRollback(ctx context.Context, o *order) (RolledBackChange, error) {
	e, notes, err := s.do(ctx, o)
	if err != nil {
		return RolledBackChange{}, err
	}
	r := RolledBackChange{ChangesetID: e.ID, Restored: []string{}, Notes: notes}
	for _, f := range o.plan.Files {
		path := f.Path
		if f.Action == Move {
			path = f.Dest
		}
		if slices.Contains(e.left, path) {
			continue
		}
		r.Restored = append(r.Restored, path)
	}
	return r, nil
}

// undoOrder prepares a rollback and looks whether it can be done. It changes nothing.
func (s *Service) undoOrder(ctx context.Context, who contract.Principal, id string) (*order, error) {
	e, err := s.journal.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := mayUndo(who, e); err != nil {
		return nil, err
	}
	p, err := s.undoPlan(ctx, who, e)
	o := &order{kind: KindRollback, principal: who.GrantID, plan: p}
	if err == nil {
		var w *work
		if w, err = s.ready(p); err == nil {
			w.close()
		}
	}
	if err != nil {
		return nil, o.failure(err)
	}
	o.check = func(ctx context.Context) error { // another process may have been first
		now, err := s.journal.find(ctx, id)
		if err != nil {
			return err
		}
		return mayUndo(who, now)
	}
	return o, nil
}

func mayUndo(who contract.Principal, e *entry) error {
	if !who.Owner && e.Principal != who.GrantID {
		return fault.New(contract.Forbidden, "this change was made by another client").
			WithHint("the owner can take it back with dodo rollback %s", e.ID)
	}
	switch e.Status {
	case Committed:
		return nil
	case RecoveryRequired, Committing:
		return unfinished(e)
	}
	list := "change_history"
	if who.GrantID == state.PrincipalOwner {
		list = "`dodo changes`"
	}
	return fault.New(contract.Conflict, "this change is not in effect").
		WithHint("%s shows which are: those with status committed", list).With("status", string(e.Status))
}

func unfinished(e *entry) error {
	return fault.New(contract.RecoveryRequired, "this change did not come to its end").
		WithHint("the owner runs dodo recover list").With("changesetId", e.ID)
}

// undoPlan is the plan that takes a change back.
func (s *Service) undoPlan(ctx context.Context, who contract.Principal, e *entry) (*Plan, error) {
	p := s.newPlan(who, rollbackSource)
	p.undoes = e.ID
	var bad []conflict
	for _, st := range slices.Backward(e.steps) {
		f := File{Path: st.path, BeforeHash: st.after, AfterHash: st.before}
		switch st.action {
		case Create:
			f.Action, f.AfterHash = Delete, ""
		case Modify:
			f.Action = Modify
		case Delete:
			f.Action, f.Parents, f.comesBack, f.mode = Create, true, true, st.mode
		case Move:
			f = File{Action: Move, Path: st.dest, Dest: st.path, BeforeHash: st.before, AfterHash: st.before, Parents: true}
		case MakeDir:
			f.Action = RemoveDir
		case RemoveDir:
			f.Action, f.comesBack, f.mode = MakeDir, true, st.mode
		}
		if f.Action == Create || f.Action == Modify {
			data, err := s.backups.load(ctx, f.AfterHash)
			if err != nil {
				if err = lost(st, err); !isConflict(err) {
					return nil, err
				}
				bad = append(bad, conflict{Path: st.path, Reason: backupReason})
				continue
			}
			f.after, f.BytesAfter = data, int64(len(data))
		}
		if f.Action == Delete || f.Action == Modify {
			in, err := s.stat(f.Path)
			if err != nil {
				return nil, err
			}
			f.BytesBefore = min(in.Size, packMax) // it may have been written under larger limits
		}
		p.Files = append(p.Files, f)
	}
	if len(bad) > 0 {
		return nil, &conflictError{bad}
	}
	return p, nil
}

func isConflict(err error) bool {
	var c *conflictError
	return errors.As(err, &c)
}

// stat tells about a file; one that is not there has no size, and ready says what is wrong.
func (s *Service) stat(path string) (workspace.Info, error) {
	p, err := parse(path)
	if err != nil {
		return workspace.Info{}, err
	}
	in, err := s.Tree.Stat(p)
	if notThere(err) {
		return workspace.Info{}, nil
	}
	return in, err
}
