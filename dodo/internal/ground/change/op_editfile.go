package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/internal/fault"
)

type editFileIn struct {
	Path         string   `json:"path" maxLength:"1024" doc:"Relative to the workspace's root, with / between names."`
	Edits        []editIn `json:"edits" minItems:"1" maxItems:"50" doc:"Done in order, each on the result of the one before. All are done or none."`
	ExpectedHash string   `json:"expectedHash,omitempty" maxLength:"128" doc:"Hash of the file as you read it: if somebody changed it since, nothing is written."`
	DryRun       bool     `json:"dryRun" default:"false" doc:"Only plan it and show the difference; apply_changes applies the plan."`
}

type editIn struct {
	Find          string `json:"find" minLength:"1" maxLength:"16777216" doc:"The exact text, with its spaces and tabs. LF also meets CRLF, which is kept. With \\r\\n in it, replace is written as it stands."`
	Replace       string `json:"replace" maxLength:"16777216" doc:"What it becomes."`
	ReplaceAll    bool   `json:"replaceAll" default:"false" doc:"Replace every place."`
	ExpectedCount int    `json:"expectedCount,omitempty" min:"1" max:"1000" doc:"How many places there are, all of which are replaced; 1 when absent."`
}

type editFileOut struct {
	DryRun       bool    `json:"dryRun,omitempty"`
	Path         string  `json:"path"`
	Hash         string  `json:"hash,omitempty"`
	BeforeHash   string  `json:"beforeHash,omitempty"`
	EditsApplied int     `json:"editsApplied"`
	Diff         string  `json:"diff"`
	ChangesetID  *string `json:"changesetId,omitempty" doc:"For rollback_changes; absent when nothing was written."`
	PlanID       string  `json:"planId,omitempty" doc:"Of a dry run, as are planHash and expiresAt: for apply_changes."`
	PlanHash     string  `json:"planHash,omitempty"`
	ExpiresAt    string  `json:"expiresAt,omitempty"`
}

func (s *Service) editFile() contract.Op {
	return contract.Do(mutate("edit_file", "Edit a file",
		"Replaces exact texts in one file. Every text must be there exactly as often as expected; otherwise nothing is written and the answer "+
			"says where it is, or what is nearest to it. Nothing is matched by likeness. Everything outside the edits stays byte for byte. "+
			"Can be taken back with rollback_changes."),
		func(ctx context.Context, c contract.Call, in editFileIn) (contract.Act[editFileOut], error) {
			edits, err := in.edits()
			if err != nil {
				return contract.Act[editFileOut]{}, err
			}
			plan := func(context.Context) (*Plan, error) {
				d := s.draft(c.Principal, "edit_file")
				_, err := d.edits(in.Path, edits, in.ExpectedHash)
				return d.plan, err
			}
			answer := func(p *Plan, changeset *string) contract.Answer[editFileOut] {
				f := p.Files[0]
				room := diffBytes
				text, cut := diff(f, edit.MaxDiff, &room)
				return contract.Answer[editFileOut]{Truncated: cut, Warnings: p.notes(), Data: editFileOut{
					Path: f.Path, Hash: f.AfterHash, BeforeHash: f.BeforeHash, EditsApplied: len(edits), Diff: text, ChangesetID: changeset,
				}}
			}
			if in.DryRun {
				return dryRun(ctx, s, plan, answer, func(out *editFileOut, p *Plan) {
					out.DryRun, out.PlanID, out.PlanHash, out.ExpiresAt = true, p.ID, p.Hash, stamp(p.Expires)
					out.Hash, out.BeforeHash = "", ""
				})
			}
			return direct[editFileOut]{s: s, who: c.Principal, plan: plan, answer: answer}.act(ctx)
		})
}

func (in editFileIn) edits() ([]edit.Edit, error) {
	list := make([]edit.Edit, len(in.Edits))
	for i, e := range in.Edits {
		if e.ReplaceAll && e.ExpectedCount != 0 {
			return nil, fault.New(contract.InvalidInput, "replaceAll and expectedCount cannot be used together").
				WithHint("replaceAll takes every place there is; expectedCount says how many there must be").With("editIndex", i)
		}
		list[i] = edit.Edit{Find: e.Find, Replace: e.Replace, ReplaceAll: e.ReplaceAll, ExpectedCount: e.ExpectedCount}
	}
	return list, nil
}

// dryRun plans, keeps the plan for apply_changes and answers without an effect.
func dryRun[Out any](ctx context.Context, s *Service, plan func(context.Context) (*Plan, error),
	answer func(*Plan, *string) contract.Answer[Out], mark func(*Out, *Plan)) (contract.Act[Out], error) {
	p, err := plan(ctx)
	if err == nil {
		err = s.plans.save(ctx, p)
	}
	if err != nil {
		return contract.Act[Out]{}, plain(err)
	}
	a := answer(p, nil)
	mark(&a.Data, p)
	return contract.Act[Out]{Done: &a}, nil
}
