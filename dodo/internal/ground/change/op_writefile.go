package change

import (
	"context"

	"localmcp/dodo/internal/contract"
)

type writeFileIn struct {
	Path          string `json:"path" maxLength:"1024" doc:"Relative to the workspace's root, with / between names."`
	Content       string `json:"content" maxLength:"16777216" doc:"The whole new content, with the line endings that it is to have: they are written as given."`
	ExpectedHash  string `json:"expectedHash,omitempty" maxLength:"128" doc:"Hash of the file as you read it. Give it when you change a file that is there: if somebody changed it since, nothing is written."`
	CreateParents bool   `json:"createParents" default:"true" doc:"Make missing directories."`
}

type writeFileOut struct {
	Path        string  `json:"path"`
	Created     bool    `json:"created" doc:"The file was not there before."`
	Hash        string  `json:"hash"`
	BeforeHash  *string `json:"beforeHash" doc:"Null when the file was not there."`
	Bytes       int64   `json:"bytes"`
	ChangesetID *string `json:"changesetId" doc:"For rollback_changes; null when the file had this content already."`
}

func (s *Service) writeFile() contract.Op {
	d := mutate("write_file", "Write a file",
		"Makes a text file, or replaces the whole content of one. For a change in a larger file use edit_file. "+
			"A byte order mark and UTF-16 of the file that is there are kept, and so is its mode. Can be taken back with rollback_changes.")
	d.Idempotent = true
	return contract.Do(d, func(ctx context.Context, c contract.Call, in writeFileIn) (contract.Act[writeFileOut], error) {
		return direct[writeFileOut]{
			s: s, who: c.Principal,
			plan: func(context.Context) (*Plan, error) {
				d := s.draft(c.Principal, "write_file")
				return d.plan, d.write(in.Path, in.Content, in.ExpectedHash, in.CreateParents)
			},
			answer: func(p *Plan, changeset *string) contract.Answer[writeFileOut] {
				f := p.Files[0]
				return contract.Answer[writeFileOut]{Data: writeFileOut{
					Path: f.Path, Created: f.Action == Create, Hash: f.AfterHash, BeforeHash: ptr(f.BeforeHash), Bytes: f.BytesAfter, ChangesetID: changeset,
				}}
			},
		}.act(ctx)
	})
}
