package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/cron"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

const (
	// tick is how often the scheduler looks.
	tick = time.Second
	// late is how long after its time a command is still started. What is later was missed: the
	// machine slept, or nobody was there.
	late = 60 * time.Second
)

// running are the times whose launch this process has begun and not noted yet.
type running struct {
	mu   sync.Mutex // guards keys
	keys map[occurrence]bool
	all  sync.WaitGroup
}

type occurrence struct {
	schedule string
	due      int64
}

func key(r state.Run) occurrence { return occurrence{r.Schedule, r.Due.UnixMilli()} }

// Run starts what is due, once a second, until ctx ends, and then waits for the launches it
// began. What was due before it began is missed. One Run at a time. A failure of the state is logged, once until it is over, and costs no more than the
// times that pass meanwhile.
func (s *Service) Run(ctx context.Context, l Launcher) error {
	defer s.begun.all.Wait()
	s.boot = s.Now()
	clock := time.NewTicker(tick)
	defer clock.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-clock.C:
		}
		err := s.tick(ctx, l)
		if err != nil && !failing && ctx.Err() == nil {
			s.Log.Warn("the schedules could not be looked at", "workspace", s.Workspace, "cause", err)
		}
		failing = err != nil
	}
}

// tick looks once.
func (s *Service) tick(ctx context.Context, l Launcher) error {
	w, err := s.State.Clockwork(ctx, s.Workspace)
	if err != nil {
		return err
	}
	var all []error
	busy := map[string]bool{} // schedules with a run that is not over
	for _, r := range w.Open {
		over, err := s.settle(ctx, l, r)
		all = append(all, err)
		if !over {
			busy[r.Schedule] = true
		}
	}
	if w.Expired > 0 {
		all = append(all, s.State.ExpireSchedules(ctx, s.Workspace))
	}
	for _, x := range w.Due {
		all = append(all, s.take(ctx, l, x, busy[x.ID]))
	}
	return errors.Join(all...)
}

// settle notes what became of an open run, and says whether it is over.
func (s *Service) settle(ctx context.Context, l Launcher, r state.OpenRun) (over bool, err error) {
	from := r.Status
	switch {
	case r.Status == state.RunClaimed && r.Mine && s.flying(r.Run):
		return false, nil
	case r.Status == state.RunClaimed && (r.Mine || r.Gone):
		r.Status, r.Reason = state.RunUncertain, "whether it was started is not known; it is not started again"
	case r.Status == state.RunLaunched && (r.Gone || r.Mine && !l.Running(r.Job)):
		r.Status = state.RunEnded
	case r.Status == state.RunLaunched && r.Mine && r.Revoked:
		if err := l.Cancel(r.Job); err != nil && l.Running(r.Job) {
			return false, fmt.Errorf("cancel the job of a revoked schedule: %w", err)
		}
		r.Status, r.Reason = state.RunCancelled, "the schedule was revoked"
	default:
		return false, nil // another process's
	}
	_, err = s.State.SettleRun(ctx, s.Workspace, from, r.Run)
	return err == nil, err
}

// take uses the time that a schedule is due: to start it, or to say why not.
func (s *Service) take(ctx context.Context, l Launcher, x state.Schedule, busy bool) error {
	t := state.Taking{Schedule: x.ID, Workspace: s.Workspace, Due: x.Next}
	p, obstacle, err := s.ready(ctx, x)
	if err != nil {
		return err
	}
	if obstacle != "" {
		t.Skip, t.Pause = obstacle, true
		_, err := s.State.TakeRun(ctx, t)
		return err
	}
	clock, err := p.Spec.clock()
	if err != nil { // the machine lost the zone
		t.Skip, t.Pause = fault.From(err).Msg, true
		_, err := s.State.TakeRun(ctx, t)
		return err
	}
	now := s.Now()
	t.Next = p.Spec.next(clock, now) // now is not before x.Next: it is due
	switch {
	case x.Next.Before(s.boot) || now.Sub(x.Next) > late:
		t.Skip = missed(clock, x.Next, now)
	case busy:
		t.Skip = "the run before is not over"
	}
	taken, err := s.State.TakeRun(ctx, t)
	if err != nil || !taken || t.Skip != "" {
		return err
	}
	s.launch(ctx, l, p, x.Next)
	return nil
}

// mostMissed is how many times that were missed are counted.
const mostMissed = 1000

// missed says how much was missed: one row stands for all of it.
func missed(clock *cron.Schedule, due, now time.Time) string {
	n := 0
	for _, r := range clock.Preview(due, mostMissed).Runs {
		if r.At.After(now) {
			break
		}
		n++
	}
	switch {
	case n >= mostMissed:
		return fmt.Sprintf("missed: the scheduler did not run, this time and at least %d more", n-1)
	case n > 1:
		return fmt.Sprintf("missed: the scheduler did not run, this time and %d more", n-1)
	}
	return "missed: the scheduler did not run then"
}

// ready says why a due schedule must be paused; empty when it may run.
func (s *Service) ready(ctx context.Context, x state.Schedule) (p Payload, obstacle string, err error) {
	if p, err = Read(x); err != nil {
		return p, fault.From(err).Msg, nil
	}
	f, err := s.obstacle(ctx, p)
	if err != nil {
		return p, "", err
	}
	if f != nil {
		return p, f.Msg, nil
	}
	policy, err := s.Policy(ctx)
	if f := fault.From(err); err != nil && f.Code == contract.Conflict {
		return p, f.Msg, nil
	}
	if err == nil && policy != x.Policy {
		obstacle = "the rules changed since it was approved"
	}
	return p, obstacle, err
}

// launch starts a claimed run. It may wait for its turn, which must not keep others from
// theirs.
func (s *Service) launch(ctx context.Context, l Launcher, p Payload, due time.Time) {
	r := state.Run{Schedule: p.ID, Due: due}
	s.fly(r, true)
	s.begun.all.Go(func() {
		defer s.fly(r, false)
		job, err := l.Launch(ctx, s.launchOf(p, due))
		r.Status, r.Job = state.RunLaunched, job
		if err != nil {
			r.Status, r.Reason = state.RunFailed, failure(err)
			s.Log.Warn("a scheduled command was not started", "schedule", p.ID, "cause", err)
		}
		noted, err := s.State.SettleRun(context.WithoutCancel(ctx), s.Workspace, state.RunClaimed, r)
		if r.Status == state.RunLaunched && (err != nil || !noted) {
			// Nobody could revoke a job that is not written down.
			s.Log.Error("a scheduled command was ended, for it could not be written down", "schedule", p.ID, "cause", errors.Join(err, l.Cancel(job)))
		}
	})
}

// failure is what is kept of an error: a code and a sentence, never its cause.
func failure(err error) string {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return string(f.Code) + ": " + f.Msg
	case errors.Is(err, context.Canceled):
		return "the server ended before it was started"
	}
	return string(contract.InternalError)
}

func (s *Service) fly(r state.Run, begun bool) {
	s.begun.mu.Lock()
	defer s.begun.mu.Unlock()
	if s.begun.keys == nil {
		s.begun.keys = map[occurrence]bool{}
	}
	if begun {
		s.begun.keys[key(r)] = true
	} else {
		delete(s.begun.keys, key(r))
	}
}

func (s *Service) flying(r state.Run) bool {
	s.begun.mu.Lock()
	defer s.begun.mu.Unlock()
	return s.begun.keys[key(r)]
}
