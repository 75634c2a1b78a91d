package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/safefile"
)

type rollbackChangesIn struct {
	ChangesetID    string `json:"changesetId" maxLength:"128" doc:"As the change answered or change_history lists it."`
	IdempotencyKey string `json:"idempotencyKey" minLength:"8" maxLength:"128" doc:"A key of yours for this one rollback: the same call with the same key is done once and answered again."`
}

type rollbackChangesOut struct {
	ChangesetID string   `json:"changesetId" doc:"Of the rollback: it can be taken back too."`
	Restored    []string `json:"restored" doc:"The paths that are as they were before."`
	Replayed    bool     `json:"replayed" doc:"The answer of an earlier call with this key."`
}

func (s *Service) rollbackChanges() contract.Op {
	d := mutate("rollback_changes", "Take a change back",
		"Takes one of your changes back: every file it wrote becomes what it was before, with its permissions, and nothing else is touched. When one of them was changed since, "+
			"nothing is done and the answer names it. The rollback is a change of its own and can be taken back too.")
	d.Idempotent = true
	return contract.DoOnce(d, func(ctx context.Context, c contract.Call, in rollbackChangesIn) (contract.Act[rollbackChangesOut], error) {
		o, err := s.undoOrder(ctx, c.Principal, in.ChangesetID)
		if err != nil {
			return contract.Act[rollbackChangesOut]{}, err
		}
		act := contract.Act[rollbackChangesOut]{Summary: o.plan.Summary(), Run: func(ctx context.Context) (contract.Answer[rollbackChangesOut], error) {
			r, err := s.runRollback(ctx, o)
			return contract.Answer[rollbackChangesOut]{
				Data: rollbackChangesOut{ChangesetID: r.ChangesetID, Restored: r.Restored}, Warnings: r.Notes, Ref: r.ChangesetID,
			}, err
		}}
		asks, err := s.asks(ctx, c.Principal)
		if asks {
			act.Preview = approval(o.plan)
		}
		return act, err
	}, s.undone)
}

// undone tells from the journal how a call ended. A rollback that was taken back itself may have
// been of another call, so it tells nothing.
func (s *Service) undone(ctx context.Context, c contract.Call, in rollbackChangesIn) (o contract.Outcome[rollbackChangesOut], err error) {
	e, known, err := s.made(ctx, "undoes = ? AND principal = ?", in.ChangesetID, c.Principal.GrantID)
	if o.Known = known && (e == nil || e.Status == Committed); err != nil || e == nil || !o.Known {
		return o, err
	}
	o.Done = &rollbackChangesOut{ChangesetID: e.ID, Restored: []string{}}
	for _, f := range e.Files {
		path := f.Path
		if f.Action == Move {
			path = f.Dest
		}
		if f.Action == RemoveDir {
			if in, err := s.stat(path); err != nil || in.Type == safefile.Directory {
				continue // it was left
			}
		}
		o.Done.Restored = append(o.Done.Restored, path)
	}
	return o, nil
}
