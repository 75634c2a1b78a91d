package change

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/internal/fault"
)

type previewChangesIn struct {
	Operations []operationIn `json:"operations" minItems:"1" maxItems:"50" doc:"What is to be done, each path once."`
}

type operationIn struct {
	Op            string  `json:"op" enum:"create|replace_file|replace_exact|delete|move"`
	Path          string  `json:"path" maxLength:"1024" doc:"Relative to the workspace's root, with / between names."`
	Content       *string `json:"content,omitempty" maxLength:"16777216" doc:"create, replace_file: the whole content."`
	CreateParents bool    `json:"createParents" default:"false" doc:"create: make missing directories."`
	Find          string  `json:"find,omitempty" minLength:"1" maxLength:"16777216" doc:"replace_exact: the exact text."`
	Replace       *string `json:"replace,omitempty" maxLength:"16777216" doc:"replace_exact: what it becomes."`
	ExpectedCount int     `json:"expectedCount,omitempty" min:"1" max:"1000" doc:"replace_exact: how many places there are, all of which are replaced; 1 when absent."`
	DestPath      string  `json:"destPath,omitempty" maxLength:"1024" doc:"move: the new path; its directory must be there, and nothing by that name."`
	ExpectedHash  string  `json:"expectedHash,omitempty" maxLength:"128" doc:"All but create: hash of the file as you read it."`
}

type previewChangesOut struct {
	PlanID           string      `json:"planId"`
	PlanHash         string      `json:"planHash"`
	ExpiresAt        string      `json:"expiresAt"`
	Summary          string      `json:"summary"`
	Risk             string      `json:"risk" doc:"low, medium or high."`
	RequiresApproval bool        `json:"requiresApproval" doc:"The owner will be asked when it is applied."`
	Files            []shownFile `json:"files"`
}

func (s *Service) previewChanges() contract.Op {
	return contract.Read(contract.Def{
		Name: "preview_changes", Title: "Plan changes", Gateway: gatewayName,
		Doc: "Plans a change of several files and shows the differences; no file is touched. apply_changes makes the change, all of it or " +
			"nothing, while the plan lasts and the files are as they were. Use it when a change is large or is to be looked at first.",
		Scope: contract.ScopeWrite, Class: contract.ClassPlan,
	}, func(ctx context.Context, c contract.Call, in previewChangesIn) (a contract.Answer[previewChangesOut], err error) {
		d := s.draft(c.Principal, "preview_changes")
		for i, o := range in.Operations {
			if err := d.operation(o); err != nil {
				return a, plain(fault.From(err).With("operation", i))
			}
		}
		a, err = s.preview(ctx, c.Principal, d.plan)
		return a, plain(err)
	})
}

// preview keeps a plan and shows it.
func (s *Service) preview(ctx context.Context, who contract.Principal, p *Plan) (a contract.Answer[previewChangesOut], err error) {
	asks, err := s.asks(ctx, who)
	if err != nil {
		return a, err
	}
	if err := s.plans.save(ctx, p); err != nil {
		return a, err
	}
	files, cut := s.show(p)
	return contract.Answer[previewChangesOut]{Truncated: cut, Warnings: p.notes(), Data: previewChangesOut{
		PlanID: p.ID, PlanHash: p.Hash, ExpiresAt: stamp(p.Expires), Summary: p.Summary(), Risk: p.Risk(), RequiresApproval: asks, Files: files,
	}}, nil
}

// operation plans one operation of a batch. What belongs to another kind is refused, so that
// nobody believes it had an effect.
func (d *drafter) operation(o operationIn) error {
	if err := o.fits(); err != nil {
		return err
	}
	switch o.Op {
	case "create":
		return d.create(o.Path, []byte(*o.Content), o.CreateParents)
	case "replace_file":
		return d.rewrite(o.Path, *o.Content, o.ExpectedHash)
	case "replace_exact":
		_, err := d.edits(o.Path, []edit.Edit{{Find: o.Find, Replace: *o.Replace, ExpectedCount: o.ExpectedCount}}, o.ExpectedHash)
		return err
	case "delete":
		return d.remove(o.Path, o.ExpectedHash)
	}
	return d.move(o.Path, o.DestPath, o.ExpectedHash)
}

func (o operationIn) fits() error {
	takes := map[string]string{
		"create": "content createParents", "replace_file": "content expectedHash", "replace_exact": "find replace expectedCount expectedHash",
		"delete": "expectedHash", "move": "destPath expectedHash",
	}[o.Op]
	for _, f := range []struct {
		name     string
		given    bool
		required bool
	}{
		{"content", o.Content != nil, true}, {"createParents", o.CreateParents, false}, {"find", o.Find != "", true},
		{"replace", o.Replace != nil, true}, {"expectedCount", o.ExpectedCount != 0, false}, {"destPath", o.DestPath != "", true},
		{"expectedHash", o.ExpectedHash != "", false},
	} {
		taken := hasWord(takes, f.name)
		switch {
		case f.given && !taken:
			return fault.New(contract.InvalidInput, "an operation of kind %s takes no %s", o.Op, f.name).WithHint("it takes path and: %s", takes)
		case !f.given && taken && f.required:
			return fault.New(contract.InvalidInput, "an operation of kind %s needs %s", o.Op, f.name).WithHint("it takes path and: %s", takes)
		}
	}
	return nil
}
