package schedule

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// A Launch is a command to start.
type Launch struct {
	Schedule      string
	Due           time.Time
	Command       string
	Cwd           string // path below the workspace's root
	Timeout       time.Duration
	Sandbox       bool // it runs in the sandbox or not at all; else as the owner's commandSandbox says
	Network       bool
	Client, Grant string // for whom

	// Check must be called when the turn of the launch has come, right before it starts: it
	// fails when the schedule may not run any more, or its time is long over.
	Check func(context.Context) error
}

// A Launcher starts commands as jobs, without input. Running and Cancel are asked about jobs
// that this process started.
type Launcher interface {
	// Launch returns when the job is there, with its id. It may wait for others' turns. ctx is
	// for the starting alone.
	Launch(ctx context.Context, l Launch) (job string, err error)
	// Running reports whether a job is not over; false for one that is not known.
	Running(job string) bool
	// Cancel ends a job and all that it started.
	Cancel(job string) error
}

func (s *Service) launchOf(p Payload, due time.Time) Launch {
	return Launch{
		Schedule: p.ID, Due: due, Command: p.Spec.Command, Cwd: p.Spec.Cwd, Timeout: time.Duration(p.Spec.TimeoutMs) * time.Millisecond,
		Sandbox: p.Spec.Sandbox, Network: p.Spec.Network, Client: p.Client, Grant: p.Grant,
		Check: func(ctx context.Context) error { return s.still(ctx, p.ID, due) },
	}
}

// still holds everything once more for a run that was claimed and waited.
func (s *Service) still(ctx context.Context, id string, due time.Time) error {
	x, err := s.State.Schedule(ctx, id)
	if err != nil {
		return err
	}
	if x.Status != state.ScheduleApproved {
		return fault.New(contract.Conflict, "the schedule is %s", x.Status)
	}
	if _, obstacle, err := s.ready(ctx, x); err != nil {
		return err
	} else if obstacle != "" {
		return fault.New(contract.Forbidden, "%s", obstacle)
	}
	if s.Now().Sub(due) > late {
		return fault.New(contract.Timeout, "its turn came too late")
	}
	return nil
}
