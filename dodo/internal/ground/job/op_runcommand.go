package job

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
)

type runCommandIn struct {
	Command        string `json:"command" minLength:"1" maxLength:"8388608" doc:"Text for /bin/sh. Above 16 KiB it runs from a file, and $0 is that file."`
	Cwd            string `json:"cwd" default:"." maxLength:"1024" doc:"Directory to start in, relative to the workspace's root."`
	WaitMs         int    `json:"waitMs" default:"45000" min:"1000" max:"300000" doc:"How long to wait for the end. A command that takes longer goes on, and the answer says status running."`
	TimeoutMs      int    `json:"timeoutMs,omitempty" min:"1000" max:"1800000" doc:"When it is ended; 10 minutes if left out."`
	Background     bool   `json:"background" default:"false" doc:"Do not wait at all."`
	Sandbox        *bool  `json:"sandbox,omitempty" doc:"True asks for the sandbox where the owner's setting would not use it. False is refused (FORBIDDEN) where the owner's setting uses it."`
	Network        bool   `json:"network" default:"true" doc:"False takes the network away."`
	Stdin          bool   `json:"stdin" default:"false" doc:"Keep standard input open for job_input; otherwise it is at its end."`
	Terminal       bool   `json:"terminal" default:"false" doc:"Give it a terminal, for programs that want one. Its input is open, and all output is in stdout."`
	IdempotencyKey string `json:"idempotencyKey,omitempty" minLength:"8" maxLength:"128" doc:"A key of yours for this one command: the same call with the same key runs it once and is answered again."`
}

type runCommandOut struct {
	stateOut
	Background bool `json:"background,omitempty"`
	Replayed   bool `json:"replayed" doc:"The answer of an earlier call with this key."`
}

func (s *Service) runCommand() contract.Op {
	d := runs("run_command", "Run a shell command",
		"Runs a command in the workspace and waits for it: up to 45 seconds unless waitMs says otherwise. The answer has the beginning and the end of its output. "+
			"A command that takes longer goes on: job_wait waits for it, job_output reads, job_cancel ends it. Cancelling the call while it waits ends the command. An exit code other than 0 is an answer, not a failure.")
	return contract.DoOnce(d, func(ctx context.Context, c contract.Call, in runCommandIn) (contract.Act[runCommandOut], error) {
		var none contract.Act[runCommandOut]
		o, err := s.draft(c, d.Name, in.IdempotencyKey, asked{
			cwd: in.Cwd, sandbox: in.Sandbox, network: in.Network, terminal: in.Terminal, stdin: in.Stdin, timeoutMs: in.TimeoutMs,
		})
		if err != nil {
			return none, err
		}
		if err := o.text(in.Command, s.Limits); err != nil {
			return none, err
		}
		if err := s.room(1); err != nil {
			return none, err
		}
		act := contract.Act[runCommandOut]{Summary: o.summary(), Preview: o.preview(), Run: func(ctx context.Context) (contract.Answer[runCommandOut], error) {
			r, err := s.begin(ctx, o)
			if err != nil {
				return contract.Answer[runCommandOut]{}, err
			}
			return s.ran(r, in.Background)
		}}
		if !in.Background {
			act.Follow = func(ctx context.Context, a contract.Answer[runCommandOut]) (contract.Answer[runCommandOut], error) {
				r, err := s.see(ctx, c, a.Data.JobID, time.Duration(in.WaitMs)*time.Millisecond)
				if err != nil {
					return a, s.unseen(err, a.Data.JobID)
				}
				return s.ran(r, false)
			}
		}
		return act, nil
	}, func(ctx context.Context, c contract.Call, in runCommandIn) (contract.Outcome[runCommandOut], error) {
		return learned(ctx, s, c, d.Name, in.IdempotencyKey, func(r *record) (runCommandOut, error) {
			a, err := s.ran(r, in.Background)
			return a.Data, err
		})
	})
}

// ran answers how a command stands.
func (s *Service) ran(r *record, background bool) (a contract.Answer[runCommandOut], err error) {
	a.Ref, a.Warnings = r.ID, r.Notes
	if a.Data.stateOut, err = s.state(r, s.outputRoom()); err != nil {
		return a, s.unseen(err, r.ID)
	}
	a.Data.Background = background
	a.Truncated = a.Data.StdoutTruncated || a.Data.StderrTruncated
	return a, nil
}
