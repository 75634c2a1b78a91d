package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
)

type applyPatchIn struct {
	Patch  string `json:"patch" minLength:"1" maxLength:"33554432" doc:"A unified diff of one or more files. /dev/null as the old name makes a file, as the new name deletes one."`
	DryRun bool   `json:"dryRun" default:"false" doc:"Only plan it and show the differences; apply_changes applies the plan."`
}

type applyPatchOut struct {
	DryRun      bool          `json:"dryRun"`
	ChangesetID *string       `json:"changesetId" doc:"For rollback_changes; null when nothing was written."`
	PlanID      string        `json:"planId"`
	PlanHash    string        `json:"planHash"`
	Files       []patchedFile `json:"files"`
}

type patchedFile struct {
	Path      string  `json:"path"`
	Action    Action  `json:"action" doc:"create, modify or delete."`
	AfterHash *string `json:"afterHash" doc:"Null when the file is deleted."`
	Diff      string  `json:"diff"`
}

func (s *Service) applyPatch() contract.Op {
	return contract.Do(mutate("apply_patch", "Apply a patch",
		"Applies a unified diff to one or many files, all of it or nothing. The lines of a hunk must be in the file exactly; a hunk that "+
			"fits at exactly one other place is applied there, and the answer says so. Renames are not supported: use move_path. "+
			"Can be taken back with rollback_changes."),
		func(ctx context.Context, c contract.Call, in applyPatchIn) (contract.Act[applyPatchOut], error) {
			sections, err := edit.ParsePatch([]byte(in.Patch))
			if err != nil {
				return contract.Act[applyPatchOut]{}, err
			}
			plan := func(context.Context) (*Plan, error) {
				d := s.draft(c.Principal, "apply_patch")
				for i := range sections {
					if err := d.patch(&sections[i]); err != nil {
						return d.plan, err
					}
				}
				return d.plan, nil
			}
			answer := func(p *Plan, changeset *string) contract.Answer[applyPatchOut] {
				files, cut := s.show(p)
				out := applyPatchOut{ChangesetID: changeset, PlanID: p.ID, PlanHash: p.Hash, Files: make([]patchedFile, len(files))}
				for i, f := range files {
					out.Files[i] = patchedFile{f.Path, f.Action, f.AfterHash, f.Diff}
				}
				return contract.Answer[applyPatchOut]{Data: out, Truncated: cut, Warnings: p.notes()}
			}
			if in.DryRun {
				return dryRun(ctx, s, plan, answer, func(out *applyPatchOut, p *Plan) { out.DryRun = true })
			}
			return direct[applyPatchOut]{s: s, who: c.Principal, plan: func(ctx context.Context) (*Plan, error) {
				p, err := plan(ctx)
				if err == nil {
					p.Hash, err = p.digest() // the answer names it
				}
				return p, err
			}, answer: answer}.act(ctx)
		})
}

// patch plans one section of a patch.
func (d *drafter) patch(f *edit.FilePatch) error {
	o := d.editing()
	if f.Action == edit.Create {
		p, err := d.path(f.Path)
		if err != nil {
			return err
		}
		content, notes, err := f.Apply(nil, o)
		if err != nil {
			return at(err, p)
		}
		if err := d.create(f.Path, content, true); err != nil {
			return err
		}
		d.last().notes = notes
		return nil
	}
	p, before, hash, err := d.current(f.Path, "")
	if err != nil {
		return err
	}
	after, notes, err := f.Apply(before, o)
	if err != nil {
		return at(err, p)
	}
	file := modified(p, before, hash, after)
	if f.Action == edit.Delete {
		file = File{Action: Delete, Path: p.String(), BeforeHash: hash, BytesBefore: int64(len(before)), before: forDiff(before)}
	}
	file.notes = notes
	return d.add(file)
}

func (d *drafter) last() *File { return &d.plan.Files[len(d.plan.Files)-1] }
