package change

import (
	"context"

	"localmcp/dodo/internal/contract"
)

// historyPaths is how many paths of a change are listed.
const historyPaths = 5

type changeHistoryIn struct {
	Limit  int    `json:"limit" min:"1" max:"100" default:"20" doc:"How many to list, the newest first."`
	Cursor string `json:"cursor,omitempty" maxLength:"128" doc:"nextCursor of the answer before: lists older ones."`
}

type changeHistoryOut struct {
	Changesets []historyEntry `json:"changesets"`
}

type historyEntry struct {
	ChangesetID string   `json:"changesetId"`
	Kind        Kind     `json:"kind" doc:"apply or rollback."`
	Status      Status   `json:"status" doc:"committing, committed, failed, rolled_back or recovery_required. Only what is committed can be taken back."`
	Summary     string   `json:"summary"`
	CreatedAt   string   `json:"createdAt"`
	CommittedAt *string  `json:"committedAt"`
	PlanID      string   `json:"planId"`
	Paths       []string `json:"paths" doc:"Some of its paths."`
	PathCount   int      `json:"pathCount"`
}

func (s *Service) changeHistory() contract.Op {
	return contract.Read(contract.Def{
		Name: "change_history", Title: "List changes", Gateway: "dodo_read",
		Doc:   "Lists the changes that were made to this workspace through dodo, the newest first, with what rollback_changes needs to take one back.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, _ contract.Call, in changeHistoryIn) (a contract.Answer[changeHistoryOut], err error) {
		list, err := s.History(ctx, in.Cursor, in.Limit+1)
		if err != nil {
			return a, err
		}
		if len(list) > in.Limit {
			list = list[:in.Limit]
			a.Truncated, a.NextCursor = true, list[in.Limit-1].ID
		}
		a.Data.Changesets = []historyEntry{}
		for _, c := range list {
			e := historyEntry{
				ChangesetID: c.ID, Kind: c.Kind, Status: c.Status, Summary: c.Summary, CreatedAt: stamp(c.Created), PlanID: c.PlanID,
				Paths: []string{}, PathCount: len(c.Files),
			}
			if !c.Committed.IsZero() {
				at := stamp(c.Committed)
				e.CommittedAt = &at
			}
			for _, f := range c.Files[:min(len(c.Files), historyPaths)] {
				e.Paths = append(e.Paths, f.Path)
			}
			a.Data.Changesets = append(a.Data.Changesets, e)
		}
		return a, nil
	})
}
