package change

import (
	"context"

	"localmcp/dodo/internal/contract"
)

type movePathIn struct {
	Path     string `json:"path" maxLength:"1024" doc:"A regular file, relative to the workspace's root."`
	DestPath string `json:"destPath" maxLength:"1024" doc:"Its new path. The directory must be there, and nothing by that name."`
}

type movePathOut struct {
	Path        string  `json:"path"`
	DestPath    string  `json:"destPath"`
	Hash        string  `json:"hash"`
	ChangesetID *string `json:"changesetId" doc:"For rollback_changes."`
}

func (s *Service) movePath() contract.Op {
	return contract.Do(mutate("move_path", "Move a file",
		"Gives one regular file another name or place. Nothing is ever overwritten. Can be taken back with rollback_changes."),
		func(ctx context.Context, c contract.Call, in movePathIn) (contract.Act[movePathOut], error) {
			return direct[movePathOut]{
				s: s, who: c.Principal,
				plan: func(context.Context) (*Plan, error) {
					d := s.draft(c.Principal, "move_path")
					return d.plan, d.move(in.Path, in.DestPath, "")
				},
				answer: func(p *Plan, changeset *string) contract.Answer[movePathOut] {
					f := p.Files[0]
					return contract.Answer[movePathOut]{Data: movePathOut{Path: f.Path, DestPath: f.Dest, Hash: f.AfterHash, ChangesetID: changeset}}
				},
			}.act(ctx)
		})
}
