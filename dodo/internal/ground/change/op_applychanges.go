package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

type applyChangesIn struct {
	PlanID         string `json:"planId" maxLength:"128"`
	PlanHash       string `json:"planHash" maxLength:"128" doc:"As preview_changes or a dry run showed it."`
	IdempotencyKey string `json:"idempotencyKey" minLength:"8" maxLength:"128" doc:"A key of yours for this one change: the same call with the same key is done once and answered again."`
}

type applyChangesOut struct {
	ChangesetID       string        `json:"changesetId" doc:"For rollback_changes."`
	Files             []appliedFile `json:"files"`
	RollbackAvailable bool          `json:"rollbackAvailable"`
	Replayed          bool          `json:"replayed" doc:"The answer of an earlier call with this key."`
}

type appliedFile struct {
	Path      string  `json:"path"`
	DestPath  string  `json:"destPath,omitempty"`
	Action    Action  `json:"action"`
	AfterHash *string `json:"afterHash"`
}

func (s *Service) applyChanges() contract.Op {
	d := mutate("apply_changes", "Apply a plan",
		"Makes the change that preview_changes or a dry run planned, all of it, or nothing when a file was changed since. Can be taken back with rollback_changes.")
	d.Idempotent = true
	return contract.DoOnce(d, func(ctx context.Context, c contract.Call, in applyChangesIn) (contract.Act[applyChangesOut], error) {
		var none contract.Act[applyChangesOut]
		stored, err := s.usable(ctx, c.Principal, in.PlanID, in.PlanHash)
		if err != nil {
			return none, plain(err)
		}
		if err := s.plans.fill(stored.Plan); err != nil {
			return none, err
		}
		o := &order{kind: KindApply, principal: c.Principal.GrantID, plan: stored.Plan, check: func(ctx context.Context) error {
			_, err := s.usable(ctx, c.Principal, in.PlanID, in.PlanHash) // another call may have been first
			return err
		}}
		w, err := s.ready(stored.Plan)
		if err != nil {
			return none, o.failure(err)
		}
		w.close()
		act := contract.Act[applyChangesOut]{Summary: stored.Summary(), Run: func(ctx context.Context) (contract.Answer[applyChangesOut], error) {
			e, notes, err := s.do(ctx, o)
			if err != nil {
				return contract.Answer[applyChangesOut]{}, err
			}
			out := applyChangesOut{ChangesetID: e.ID, RollbackAvailable: true, Files: []appliedFile{}}
			for _, f := range o.plan.Files {
				out.Files = append(out.Files, appliedFile{f.Path, f.Dest, f.Action, ptr(f.AfterHash)})
			}
			return contract.Answer[applyChangesOut]{Data: out, Warnings: notes, Ref: out.ChangesetID}, nil
		}}
		asks, err := s.asks(ctx, c.Principal)
		if asks {
			act.Preview = approval(stored.Plan)
		}
		return act, err
	}, s.applied)
}

// applied tells from the journal how a call ended.
func (s *Service) applied(ctx context.Context, c contract.Call, in applyChangesIn) (o contract.Outcome[applyChangesOut], err error) {
	e, known, err := s.made(ctx, "plan = ? AND principal = ?", in.PlanID, c.Principal.GrantID)
	if o.Known = known; err != nil || e == nil {
		return o, err
	}
	o.Done = &applyChangesOut{ChangesetID: e.ID, RollbackAvailable: e.Status == Committed, Files: []appliedFile{}}
	for _, f := range e.Files {
		if f.Action != MakeDir { // on the way to a new file
			o.Done.Files = append(o.Done.Files, appliedFile{f.Path, f.Dest, f.Action, ptr(f.AfterHash)})
		}
	}
	return o, nil
}

// made finds the change that came of a call which died or did not know: nil and known when none
// is in effect or ever was.
func (s *Service) made(ctx context.Context, where string, args ...any) (e *entry, known bool, err error) {
	if err := s.Reconcile(ctx); err != nil {
		return nil, false, plain(err)
	}
	list, err := s.journal.entries(ctx, "workspace = ? AND "+where+" ORDER BY seq", append([]any{s.WorkspaceID}, args...)...)
	if err != nil {
		return nil, false, err
	}
	for _, one := range list {
		switch one.Status {
		case Committed, RolledBack:
			e = one
		case Committing, RecoveryRequired:
			return nil, false, unfinished(one)
		}
	}
	return e, true, nil
}

// usable finds a plan that this caller may apply now.
func (s *Service) usable(ctx context.Context, who contract.Principal, id, hash string) (storedPlan, error) {
	p, err := s.plans.find(ctx, id)
	if err != nil {
		return p, err
	}
	if p.Principal != who.GrantID {
		return p, fault.New(contract.Forbidden, "this plan was made by another client").WithHint("make one with preview_changes")
	}
	if p.Workspace != s.WorkspaceID {
		return p, fault.New(contract.WorkspaceMismatch, "this plan is for another workspace").WithHint("make one for this workspace with preview_changes")
	}
	why := ""
	switch {
	case p.used:
		why = "this plan was applied already"
	case p.Epoch != s.Epoch:
		why = "this plan was made before the workspace was opened anew"
	case !s.Now().Before(p.Expires):
		why = "this plan is too old"
	}
	if why != "" {
		return p, fault.New(contract.PlanExpired, "%s", why).WithHint("preview the change again").With("planId", id)
	}
	real, err := p.digest()
	if err != nil {
		return p, err
	}
	if hash != real || p.Hash != real {
		return p, fault.New(contract.PlanHashMismatch, "the hash is not that of the stored plan").
			WithHint("give the planHash that the preview showed, or preview the change again").With("planId", id)
	}
	return p, nil
}
