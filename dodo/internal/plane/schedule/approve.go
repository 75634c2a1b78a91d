package schedule

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// Approve is the owner's yes to exactly what a digest is of. From then on the rules must stay
// as they are at that moment.
func (s *Service) Approve(ctx context.Context, id, digest string) (state.Schedule, error) {
	return s.allow(ctx, state.ScheduleApproval{ID: id, Digest: digest})
}

// Resume is the owner's word that a paused schedule goes on, under the rules as they are now.
func (s *Service) Resume(ctx context.Context, id string) (state.Schedule, error) {
	return s.allow(ctx, state.ScheduleApproval{ID: id, Resume: true})
}

func (s *Service) allow(ctx context.Context, a state.ScheduleApproval) (state.Schedule, error) {
	x, err := s.State.Schedule(ctx, a.ID)
	if err != nil {
		return x, err
	}
	p, err := Read(x)
	if err != nil {
		return x, err
	}
	if a.Resume {
		a.Digest = x.Digest
	}
	obstacle, err := s.obstacle(ctx, p)
	if err != nil {
		return x, err
	}
	if obstacle != nil {
		return x, obstacle
	}
	if a.Policy, err = s.Policy(ctx); err != nil {
		return x, err
	}
	clock, err := p.Spec.clock()
	if err != nil {
		return x, err
	}
	if a.Next = p.Spec.next(clock, s.Now()); a.Next.IsZero() && x.Status != state.ScheduleRevoked && x.Status != state.ScheduleExpired {
		return x, fault.New(contract.Conflict, "there is no occurrence left before it expires").WithHint("make it anew with a later expiry")
	}
	return s.State.ApproveSchedule(ctx, a)
}

// obstacle is what keeps a schedule from being approved and from running, beside the rules it
// was approved under; nil when nothing does.
func (s *Service) obstacle(ctx context.Context, p Payload) (*fault.Error, error) {
	if dev, ino := s.identity(); p.Workspace != s.Workspace || p.Root != s.Tree.Root() || p.Dev != dev || p.Ino != ino {
		return fault.New(contract.Conflict, "another directory is at the workspace's root than when the schedule was made").WithHint("make it anew"), nil
	}
	if err := s.Tree.Check(); err != nil {
		return fault.From(err), nil
	}
	now, err := s.State.Authority(ctx, s.Workspace, p.Client)
	if err != nil {
		return nil, err
	}
	if now.Trust != contract.TrustTrusted {
		return state.NotTrusted(now.Trust), nil
	}
	if !p.remote() {
		return nil, nil
	}
	may := false
	if s.Grants != nil {
		if may, err = s.Grants.MayRun(ctx, p.Grant, p.Client, s.Workspace); err != nil {
			return nil, err
		}
	}
	if !may {
		return fault.New(contract.Forbidden, "the client that proposed it may not run commands here any more").
			WithHint("`dodo access list` shows what clients may do; a grant that was revoked does not come back"), nil
	}
	return nil, nil
}
