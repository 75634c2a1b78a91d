package change

import (
	"context"

	"localmcp/dodo/internal/contract"
)

type deletePathIn struct {
	Path         string `json:"path" maxLength:"1024" doc:"A regular file, relative to the workspace's root."`
	ExpectedHash string `json:"expectedHash,omitempty" maxLength:"128" doc:"Hash of the file as you read it: if somebody changed it since, it stays."`
}

type deletePathOut struct {
	Path        string  `json:"path"`
	Deleted     bool    `json:"deleted"`
	BeforeHash  string  `json:"beforeHash"`
	ChangesetID *string `json:"changesetId" doc:"For rollback_changes."`
}

func (s *Service) deletePath() contract.Op {
	return contract.Do(mutate("delete_path", "Delete a file",
		"Deletes one regular file; directories are left. Can be taken back with rollback_changes."),
		func(ctx context.Context, c contract.Call, in deletePathIn) (contract.Act[deletePathOut], error) {
			return direct[deletePathOut]{
				s: s, who: c.Principal,
				plan: func(context.Context) (*Plan, error) {
					d := s.draft(c.Principal, "delete_path")
					return d.plan, d.remove(in.Path, in.ExpectedHash)
				},
				answer: func(p *Plan, changeset *string) contract.Answer[deletePathOut] {
					f := p.Files[0]
					return contract.Answer[deletePathOut]{Data: deletePathOut{Path: f.Path, Deleted: true, BeforeHash: f.BeforeHash, ChangesetID: changeset}}
				},
			}.act(ctx)
		})
}
