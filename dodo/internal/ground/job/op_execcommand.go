package job

import (
	"context"

	"localmcp/dodo/internal/contract"
)

type execCommandIn struct {
	Program        string   `json:"program" minLength:"1" maxLength:"512" doc:"Name of an installed program, or the path of a file of the workspace from cwd on, such as ./build.sh."`
	Args           []string `json:"args" default:"[]" maxItems:"128" maxLength:"65536" doc:"Each reaches the program as it is."`
	Cwd            string   `json:"cwd" default:"." maxLength:"1024" doc:"Directory to start in, relative to the workspace's root."`
	TimeoutMs      int      `json:"timeoutMs,omitempty" min:"1000" max:"1800000" doc:"When it is ended; 10 minutes if left out."`
	Stdin          bool     `json:"stdin" default:"false" doc:"Keep standard input open for job_input; otherwise it is at its end."`
	Terminal       bool     `json:"terminal" default:"false" doc:"Give it a terminal. Its input is open, and all output is in stdout."`
	IdempotencyKey string   `json:"idempotencyKey" minLength:"8" maxLength:"128" doc:"A key of yours for this one command: the same call with the same key runs it once and is answered again."`
}

type execCommandOut struct {
	JobID    string `json:"jobId" doc:"For job_wait, job_output and the others."`
	Replayed bool   `json:"replayed" doc:"The answer of an earlier call with this key."`
}

func (s *Service) execCommand() contract.Op {
	d := runs("exec_command", "Start a program",
		"Starts a program with arguments, without a shell, and answers at once. job_wait waits for it, job_output reads, job_cancel ends it.")
	d.Idempotent = true
	return contract.DoOnce(d, func(ctx context.Context, c contract.Call, in execCommandIn) (contract.Act[execCommandOut], error) {
		var none contract.Act[execCommandOut]
		o, err := s.draft(c, d.Name, in.IdempotencyKey, asked{cwd: in.Cwd, network: true, terminal: in.Terminal, stdin: in.Stdin, timeoutMs: in.TimeoutMs})
		if err != nil {
			return none, err
		}
		if err := s.program(ctx, o, in.Program, in.Args); err != nil {
			return none, err
		}
		if err := s.room(1); err != nil {
			return none, err
		}
		return contract.Act[execCommandOut]{Summary: o.summary(), Preview: o.preview(), Run: func(ctx context.Context) (a contract.Answer[execCommandOut], err error) {
			if err := s.unchanged(ctx, o); err != nil {
				return a, err
			}
			r, err := s.begin(ctx, o)
			if err != nil {
				return a, err
			}
			return contract.Answer[execCommandOut]{Data: execCommandOut{JobID: r.ID}, Warnings: r.Notes, Ref: r.ID}, nil
		}}, nil
	}, func(ctx context.Context, c contract.Call, in execCommandIn) (contract.Outcome[execCommandOut], error) {
		return learned(ctx, s, c, d.Name, in.IdempotencyKey, func(r *record) (execCommandOut, error) { return execCommandOut{JobID: r.ID}, nil })
	})
}
