package job

import (
	"context"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// begin starts an order, and gives the job as it stands then.
func (s *Service) begin(ctx context.Context, o *order) (*record, error) {
	if err := s.reserve(1); err != nil {
		return nil, err
	}
	j, err := s.start(ctx, o)
	if err != nil {
		return nil, err
	}
	return j.now(), nil
}

// unseen is the fault of jobs that were started and cannot be looked at: whatever the cause is,
// it must not cost their ids.
func (s *Service) unseen(cause error, ids ...string) error {
	f := fault.Wrap(contract.RecoveryRequired, cause, "the command was started, and how it stands cannot be read now").
		WithHint("job_status tells it later of %s; do not start it again before", strings.Join(ids, ", "))
	if len(ids) > 1 {
		return f.With("jobIds", ids)
	}
	return f.With("jobId", ids[0])
}

// learned tells from the rows what came of a call whose process died before it answered: a
// row is there before its process is, so without one nothing was started.
func learned[Out any](ctx context.Context, s *Service, c contract.Call, tool, key string, answer func(*record) (Out, error)) (contract.Outcome[Out], error) {
	// The job of an earlier use of the key is older by a retention at least. Half of one is enough
	// to tell them apart, and more than a clock is set back by: nothing may run twice.
	since := c.Since.Add(-time.Duration(s.Limits.IdempotencyRetentionMs/2) * time.Millisecond).UnixMilli()
	list, err := s.rows(ctx, "workspace = ? AND principal = ? AND tool = ? AND call_key = ? AND created >= ? ORDER BY seq DESC LIMIT 1",
		s.WorkspaceID, c.Principal.GrantID, tool, key, since)
	if err != nil || len(list) == 0 {
		return contract.Outcome[Out]{Known: err == nil}, err
	}
	r, err := s.settled(ctx, list[0])
	if err != nil {
		return contract.Outcome[Out]{}, err
	}
	if r.Status == FailedToStart {
		return contract.Outcome[Out]{Known: true}, nil
	}
	out, err := answer(r)
	return contract.Outcome[Out]{Known: err == nil, Done: &out}, err
}
