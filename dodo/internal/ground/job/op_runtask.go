package job

import (
	"context"

	"localmcp/dodo/internal/contract"
)

type runTaskIn struct {
	TaskID         string `json:"taskId" minLength:"1" maxLength:"128" doc:"As project_overview lists it."`
	RecipeDigest   string `json:"recipeDigest" minLength:"8" maxLength:"128" doc:"As listed with it: a task that was changed since is not run."`
	TimeoutMs      int    `json:"timeoutMs,omitempty" min:"1000" max:"1800000" doc:"When it is ended; 10 minutes if left out."`
	IdempotencyKey string `json:"idempotencyKey" minLength:"8" maxLength:"128" doc:"A key of yours for this one run: the same call with the same key runs it once and is answered again."`
}

type runTaskOut struct {
	JobID    string `json:"jobId" doc:"For job_wait, job_output and the others."`
	TaskID   string `json:"taskId"`
	Replayed bool   `json:"replayed" doc:"The answer of an earlier call with this key."`
}

func (s *Service) runTask() contract.Op {
	d := runs("run_task", "Run a task of the project",
		"Starts one of the tasks that project_overview lists, such as a script of package.json, and answers at once. job_wait waits for it, job_output reads, job_cancel ends it.")
	d.Idempotent = true
	return contract.DoOnce(d, func(ctx context.Context, c contract.Call, in runTaskIn) (contract.Act[runTaskOut], error) {
		var none contract.Act[runTaskOut]
		o, err := s.taskOrder(ctx, c, d.Name, in)
		if err != nil {
			return none, err
		}
		if err := s.room(1); err != nil {
			return none, err
		}
		return contract.Act[runTaskOut]{Summary: o.summary(), Preview: o.preview(), Run: func(ctx context.Context) (a contract.Answer[runTaskOut], err error) {
			now, err := s.taskOrder(ctx, c, d.Name, in) // its file may have been changed meanwhile
			if err != nil {
				return a, err
			}
			if now.hash != o.hash {
				return a, now.changed()
			}
			r, err := s.begin(ctx, now)
			if err != nil {
				return a, err
			}
			return contract.Answer[runTaskOut]{Data: runTaskOut{JobID: r.ID, TaskID: r.Recipe}, Warnings: r.Notes, Ref: r.ID}, nil
		}}, nil
	}, func(ctx context.Context, c contract.Call, in runTaskIn) (contract.Outcome[runTaskOut], error) {
		return learned(ctx, s, c, d.Name, in.IdempotencyKey, func(r *record) (runTaskOut, error) { return runTaskOut{JobID: r.ID, TaskID: r.Recipe}, nil })
	})
}

// taskOrder makes an order of a task as it is now.
func (s *Service) taskOrder(ctx context.Context, c contract.Call, tool string, in runTaskIn) (*order, error) {
	t, err := s.recipe(ctx, in.TaskID, in.RecipeDigest)
	if err != nil {
		return nil, err
	}
	o, err := s.draft(c, tool, in.IdempotencyKey, asked{cwd: t.Cwd, network: true, timeoutMs: in.TimeoutMs})
	if err != nil {
		return nil, err
	}
	o.kind, o.task = Task, t
	return o, s.program(ctx, o, t.Program, t.Args)
}
