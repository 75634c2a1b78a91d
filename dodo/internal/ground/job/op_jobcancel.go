package job

import (
	"cmp"
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
)

type jobCancelIn struct {
	JobID string `json:"jobId" maxLength:"128"`
}

type jobCancelOut struct {
	Status string `json:"status" doc:"canceling, or how it ended when it was over already."`
}

// canceling is the status that only a cancel answers.
const canceling Status = "canceling"

func (s *Service) jobCancel() contract.Op {
	return contract.Read(contract.Def{
		Name: "job_cancel", Title: "End a running command", Gateway: execGateway,
		Doc:   "Asks a job and everything it started to end, and kills what is left 5 seconds later. job_wait tells when it is over.",
		Scope: contract.ScopeExec, Class: contract.ClassJobControl, Destructive: true, Idempotent: true,
	}, func(ctx context.Context, c contract.Call, in jobCancelIn) (a contract.Answer[jobCancelOut], err error) {
		r, err := s.visible(ctx, c.Principal, in.JobID)
		if err != nil {
			return a, err
		}
		a.Ref = r.ID
		if a.Data.Status, err = s.cancel(r); err != nil {
			return a, err
		}
		if r.Isolation == sandbox.None || r.Isolation == sandbox.Reduced {
			a.Warnings = []string{"The command ran without namespaces: a program that it detached from itself may go on."}
		}
		return a, nil
	})
}

// cancel ends a job that runs here.
func (s *Service) cancel(r *record) (status string, err error) {
	if r.over() {
		return string(r.Status), nil
	}
	j := s.running(r.ID)
	if j == nil {
		return "", elsewhere(r, "its output can be read from here; ")
	}
	return string(cmp.Or(j.end(Canceled, killAfter), canceling)), nil
}
