package job

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/fault"
)

type listJobsIn struct {
	Limit  int    `json:"limit" min:"1" max:"100" default:"20"`
	Cursor string `json:"cursor,omitempty" maxLength:"128" doc:"nextCursor of the answer before: lists older ones."`
}

type listJobsOut struct {
	Jobs []listedOut `json:"jobs" doc:"The newest first."`
}

type listedOut struct {
	JobID     string            `json:"jobId"`
	Status    Status            `json:"status"`
	Kind      Kind              `json:"kind"`
	Program   string            `json:"program"`
	TaskID    string            `json:"taskId,omitempty"`
	CreatedAt string            `json:"createdAt"`
	EndedAt   *string           `json:"endedAt"`
	ExitCode  *int              `json:"exitCode"`
	Isolation sandbox.Isolation `json:"isolation,omitempty"`
}

func (s *Service) listJobs() contract.Op {
	return contract.Read(looks("list_jobs", "List the jobs", "Lists the jobs of the workspace that you started, the newest first; the owner's clients see all."),
		func(ctx context.Context, c contract.Call, in listJobsIn) (a contract.Answer[listJobsOut], err error) {
			list, err := s.list(ctx, c.Principal, in.Cursor, in.Limit+1)
			if err != nil {
				return a, err
			}
			if len(list) > in.Limit {
				list = list[:in.Limit]
				a.Truncated, a.NextCursor = true, list[in.Limit-1].ID
			}
			for _, r := range list {
				a.Data.Jobs = append(a.Data.Jobs, listedOut{
					r.ID, r.Status, r.Kind, r.Program, r.Recipe, stamp(r.Created), stampOf(r.Ended), r.ExitCode, r.Isolation,
				})
			}
			return a, nil
		})
}

// list gives the newest jobs that a caller may see, as they stand now; older ones than that
// of the id before, unless it is empty.
func (s *Service) list(ctx context.Context, p contract.Principal, before string, most int) ([]*record, error) {
	where, args := "workspace = ?", []any{s.WorkspaceID}
	if !p.Owner {
		where, args = where+" AND principal = ?", append(args, p.GrantID)
	}
	if before != "" {
		there, err := s.rows(ctx, where+" AND id = ?", append(args, before)...)
		if err != nil {
			return nil, err
		}
		if len(there) == 0 {
			return nil, fault.New(contract.NotFound, "cursor is not one that list_jobs gave, or its job is forgotten by now").
				WithHint("leave cursor out to begin with the newest")
		}
		where, args = where+" AND seq < (SELECT seq FROM jobs WHERE id = ?)", append(args, before)
	}
	list, err := s.rows(ctx, where+" ORDER BY seq DESC LIMIT ?", append(args, most)...)
	for i, r := range list {
		if err != nil {
			break
		}
		list[i], err = s.settled(ctx, r)
	}
	return list, err
}
