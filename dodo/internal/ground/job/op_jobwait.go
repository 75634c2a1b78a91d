package job

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
)

type jobWaitIn struct {
	JobID  string `json:"jobId" maxLength:"128"`
	WaitMs int    `json:"waitMs" default:"45000" min:"1000" max:"300000" doc:"How long to wait at most."`
}

type jobWaitOut struct {
	stateOut
	Exited bool `json:"exited" doc:"The job is over."`
}

func (s *Service) jobWait() contract.Op {
	return contract.Read(looks("job_wait", "Wait for a job",
		"Waits until a job is over, up to 45 seconds unless waitMs says otherwise, and shows the beginning and the end of its output. Call it again while status is running."),
		func(ctx context.Context, c contract.Call, in jobWaitIn) (a contract.Answer[jobWaitOut], err error) {
			r, err := s.visible(ctx, c.Principal, in.JobID)
			if err == nil {
				r, err = s.wait(ctx, c, r.ID, time.Duration(in.WaitMs)*time.Millisecond)
			}
			if err != nil {
				return a, err
			}
			a.Ref, a.Warnings = r.ID, r.Notes
			a.Data.stateOut, err = s.state(r, s.outputRoom())
			a.Data.Exited = r.over()
			a.Truncated = a.Data.StdoutTruncated || a.Data.StderrTruncated
			return a, err
		})
}
