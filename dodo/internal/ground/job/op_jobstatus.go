package job

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
)

type jobStatusIn struct {
	JobID string `json:"jobId" maxLength:"128"`
}

type jobStatusOut struct {
	JobID         string            `json:"jobId"`
	Status        Status            `json:"status"`
	Kind          Kind              `json:"kind" doc:"exec: a command. task: a task of the project."`
	Program       string            `json:"program"`
	Args          []string          `json:"args"`
	ArgsTruncated bool              `json:"argsTruncated" doc:"args is the beginning of them."`
	Cwd           string            `json:"cwd"`
	TaskID        string            `json:"taskId,omitempty"`
	ExitCode      *int              `json:"exitCode"`
	Signal        *string           `json:"signal"`
	CreatedAt     string            `json:"createdAt"`
	StartedAt     *string           `json:"startedAt"`
	EndedAt       *string           `json:"endedAt"`
	TimeoutMs     int64             `json:"timeoutMs"`
	StdoutBytes   int64             `json:"stdoutBytes"`
	StderrBytes   int64             `json:"stderrBytes"`
	Sandboxed     *bool             `json:"sandboxed" doc:"Null when it never ran."`
	Isolation     sandbox.Isolation `json:"isolation,omitempty" doc:"full, bwrap, reduced or none."`
	Notes         []string          `json:"notes" doc:"What else is to be known of how it ran."`
}

func (s *Service) jobStatus() contract.Op {
	return contract.Read(looks("job_status", "Show a job", "Tells how a job stands and how it was started, without its output."),
		func(ctx context.Context, c contract.Call, in jobStatusIn) (a contract.Answer[jobStatusOut], err error) {
			r, err := s.visible(ctx, c.Principal, in.JobID)
			if err != nil {
				return a, err
			}
			a.Ref = r.ID
			a.Data = jobStatusOut{
				JobID: r.ID, Status: r.Status, Kind: r.Kind, Program: r.Program, Args: r.Args, ArgsTruncated: r.ArgsCut, Cwd: r.Cwd, TaskID: r.Recipe,
				ExitCode: r.ExitCode, Signal: orNil(r.Signal), CreatedAt: stamp(r.Created), StartedAt: stampOf(r.Started), EndedAt: stampOf(r.Ended),
				TimeoutMs: r.Timeout.Milliseconds(), StdoutBytes: r.OutBytes, StderrBytes: r.ErrBytes, Sandboxed: confined(r), Isolation: r.Isolation, Notes: r.Notes,
			}
			return a, nil
		})
}
