package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
)

type makeDirectoryIn struct {
	Path string `json:"path" maxLength:"1024" doc:"Relative to the workspace's root. Missing directories above it are made too."`
}

type makeDirectoryOut struct {
	Path           string   `json:"path"`
	Created        bool     `json:"created" doc:"False when it was there already."`
	CreatedParents []string `json:"createdParents,omitempty" doc:"Directories above it that were made."`
	ChangesetID    *string  `json:"changesetId,omitempty" doc:"For rollback_changes, which removes what is empty."`
}

func (s *Service) makeDirectory() contract.Op {
	d := mutate("make_directory", "Make a directory",
		"Makes a directory and the missing ones above it. It is not needed before write_file, which makes them itself. Can be taken back with rollback_changes.")
	d.Destructive, d.Idempotent = false, true
	return contract.Do(d, func(ctx context.Context, c contract.Call, in makeDirectoryIn) (contract.Act[makeDirectoryOut], error) {
		p, err := workspace.ParsePath(in.Path)
		if err != nil {
			return contract.Act[makeDirectoryOut]{}, err
		}
		d := s.draft(c.Principal, "make_directory")
		there, err := d.directory(in.Path)
		if err != nil {
			return contract.Act[makeDirectoryOut]{}, err
		}
		out := makeDirectoryOut{Path: p.String()}
		if there {
			return contract.Act[makeDirectoryOut]{Done: &contract.Answer[makeDirectoryOut]{Data: out}}, nil
		}
		o := &order{kind: KindApply, principal: c.Principal.GrantID, plan: d.plan}
		act := contract.Act[makeDirectoryOut]{Summary: d.plan.Summary(), Run: func(ctx context.Context) (contract.Answer[makeDirectoryOut], error) {
			e, _, err := s.do(ctx, o)
			if err != nil {
				return contract.Answer[makeDirectoryOut]{}, err
			}
			for _, f := range e.Files {
				if f.Path == out.Path {
					out.Created = true
				} else {
					out.CreatedParents = append(out.CreatedParents, f.Path)
				}
			}
			if out.Created {
				out.ChangesetID = &e.ID
			}
			return contract.Answer[makeDirectoryOut]{Data: out, Ref: e.ID}, nil
		}}
		asks, err := s.asks(ctx, c.Principal)
		if asks {
			act.Preview = approval(d.plan)
		}
		return act, err
	})
}
