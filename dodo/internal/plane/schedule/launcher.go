package schedule

import (
	"context"
	"time"
)

// A Launch is a command to start.
type Launch struct {
	Schedule      string
	Due           time.Time
	Command       string
	Cwd           string // path below the workspace's root
	Timeout       time.Duration
	Sandbox       bool // it runs in the sandbox or not at all
	Network       bool
	Client, Grant string // for whom
}

// A Launcher starts commands as jobs, without input. Running and Cancel are asked about jobs
// that this process started.
type Launcher interface {
	// Launch returns when the job is there, with its id. It may wait for others' turns.
	Launch(ctx context.Context, l Launch) (job string, err error)
	// Running reports whether a job is not over; false for one that is not known.
	Running(job string) bool
	// Cancel ends a job and all that it started.
	Cancel(job string) error
}

func (p Payload) launch(due time.Time) Launch {
	return Launch{
		Schedule: p.ID, Due: due, Command: p.Spec.Command, Cwd: p.Spec.Cwd, Timeout: time.Duration(p.Spec.TimeoutMs) * time.Millisecond,
		Sandbox: p.Spec.Sandbox, Network: p.Spec.Network, Client: p.Client, Grant: p.Grant,
	}
}
