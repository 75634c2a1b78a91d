package job

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/fault"
)

// A Launch is a command that no call waits for, such as one that the clock starts. It has no
// input.
type Launch struct {
	Principal string // id of the grant it runs for
	Command   string // text for the shell
	Cwd       string // below the root
	Timeout   time.Duration
	Sandbox   bool // it runs in full walls or not at all; else as the owner's setting has it
	Network   bool
	// Check is asked right before the start; its fault is Launch's.
	Check func(context.Context) error
}

// Launch starts a command and gives the job's id. The owner's approval of it is the caller's
// matter. ctx is for the start alone.
func (s *Service) Launch(ctx context.Context, l Launch) (id string, err error) {
	c := contract.Call{Principal: contract.Principal{GrantID: l.Principal}}
	o, err := s.draft(c, "schedule", "", asked{cwd: l.Cwd, network: l.Network, timeoutMs: int(l.Timeout.Milliseconds())})
	if err != nil {
		return "", err
	}
	if l.Sandbox {
		o.mode = sandbox.Require
	}
	if err := o.text(l.Command, s.Limits); err != nil {
		return "", err
	}
	if l.Check != nil {
		if err := l.Check(ctx); err != nil {
			return "", err
		}
	}
	r, err := s.begin(ctx, o)
	if err != nil {
		return "", err
	}
	return r.ID, nil
}

// Running reports whether a job of this process is not over.
func (s *Service) Running(id string) bool { return s.running(id) != nil }

// End cancels a job of this process. One that is over, or not here, is JOB_NOT_FOUND.
func (s *Service) End(id string) error {
	j := s.running(id)
	if j == nil {
		return fault.New(contract.JobNotFound, "no job of that id runs here")
	}
	j.end(Canceled, killAfter)
	return nil
}
