package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/edit"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

const (
	// findChars is how long a text one can search for (spec dodo-catalog 6).
	findChars = 512
	// candidatesMax is how many files are read at most: what is searched for is a part of the
	// text, and may be in many files that do not have all of it.
	candidatesMax = 1000
)

type replaceInFilesIn struct {
	Find           string   `json:"find" minLength:"1" maxLength:"16777216" doc:"The exact text; no pattern."`
	Replace        string   `json:"replace" maxLength:"16777216"`
	Paths          []string `json:"paths,omitempty" maxItems:"20" maxLength:"1024" doc:"Only in these files and directories."`
	FileGlob       string   `json:"fileGlob,omitempty" minLength:"1" maxLength:"256" doc:"Only files whose name (pattern without /) or path matches, such as *.go or src/**/*.{ts,tsx}."`
	IncludeIgnored bool     `json:"includeIgnored" default:"false" doc:"Also in what ignore files and the usual build folders leave out, such as node_modules."`
	MaxFiles       int      `json:"maxFiles" min:"1" max:"50" default:"50" doc:"When more files have the text, nothing is done."`
	DryRun         bool     `json:"dryRun" default:"true" doc:"Only plan it and show the differences; apply_changes applies the plan. False writes at once."`
}

type replaceInFilesOut struct {
	DryRun            bool           `json:"dryRun"`
	ChangesetID       *string        `json:"changesetId" doc:"For rollback_changes; null when nothing was written."`
	PlanID            string         `json:"planId,omitempty"`
	PlanHash          string         `json:"planHash,omitempty"`
	Files             []replacedFile `json:"files"`
	TotalReplacements int            `json:"totalReplacements"`
	Diffs             []pathDiff     `json:"diffs,omitempty"`
	Note              string         `json:"note,omitempty"`
}

type replacedFile struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
}

type pathDiff struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

func (s *Service) replaceInFiles() contract.Op {
	return contract.Do(mutate("replace_in_files", "Replace in many files",
		"Replaces every place of one exact text in many files, all or none. Unless dryRun is false it only shows what would change. "+
			"Files that are not text are left alone. Can be taken back with rollback_changes."),
		func(ctx context.Context, c contract.Call, in replaceInFilesIn) (contract.Act[replaceInFilesOut], error) {
			var counts map[string]int
			var last *Plan
			plan := func(ctx context.Context) (*Plan, error) {
				d := s.draft(c.Principal, "replace_in_files")
				var err error
				counts, err = d.replaceAll(ctx, in)
				if err == nil && !in.DryRun {
					d.plan.Hash, err = d.plan.digest()
				}
				last = d.plan
				return d.plan, err
			}
			answer := func(p *Plan, changeset *string) contract.Answer[replaceInFilesOut] {
				files, cut := s.show(p)
				out := replaceInFilesOut{ChangesetID: changeset, PlanID: p.ID, PlanHash: p.Hash, Files: []replacedFile{}}
				for _, f := range files {
					out.Files = append(out.Files, replacedFile{f.Path, counts[f.Path]})
					out.Diffs = append(out.Diffs, pathDiff{f.Path, f.Diff})
					out.TotalReplacements += counts[f.Path]
				}
				return contract.Answer[replaceInFilesOut]{Data: out, Truncated: cut, Warnings: p.notes()}
			}
			if in.DryRun {
				p, err := plan(ctx)
				if err != nil {
					return contract.Act[replaceInFilesOut]{}, plain(err)
				}
				if len(p.Files) == 0 {
					return none(p, true), nil
				}
				return dryRun(ctx, s, func(context.Context) (*Plan, error) { return p, nil }, answer,
					func(out *replaceInFilesOut, p *Plan) { out.DryRun = true })
			}
			act, err := direct[replaceInFilesOut]{s: s, who: c.Principal, plan: plan, answer: answer}.act(ctx)
			if err == nil && len(counts) == 0 {
				return none(last, false), nil
			}
			return act, err
		})
}

// none answers that there is nothing to replace.
func none(p *Plan, dry bool) contract.Act[replaceInFilesOut] {
	return contract.Act[replaceInFilesOut]{Done: &contract.Answer[replaceInFilesOut]{Warnings: p.notes(), Data: replaceInFilesOut{
		DryRun: dry, Files: []replacedFile{}, Note: "The text is in no text file that was searched.",
	}}}
}

// replaceAll plans the replacement in every file that has the text, and counts it by path.
func (d *drafter) replaceAll(ctx context.Context, in replaceInFilesIn) (map[string]int, error) {
	if d.s.Find == nil {
		return nil, fault.New(contract.NotSupported, "files cannot be searched here").WithHint("change the files one by one with edit_file")
	}
	var paths []workspace.Path
	for _, p := range in.Paths {
		path, err := d.path(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	literal := searchable(in.Find)
	if literal == "" {
		return nil, fault.New(contract.InvalidInput, "the text to find has nothing but line breaks").WithHint("give a text of at least one line")
	}
	found, err := d.s.Find.Find(ctx, literal, paths, in.FileGlob, in.IncludeIgnored, candidatesMax)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	unnamed := 0
	for _, p := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !p.Nameable() {
			unnamed++
			continue
		}
		n, err := d.replaceIn(p, in)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		counts[p.String()] = n
		if len(counts) > in.MaxFiles {
			return nil, tooMany(found, in.MaxFiles)
		}
	}
	if len(found) == candidatesMax {
		return nil, tooMany(found, in.MaxFiles)
	}
	if unnamed > 0 {
		d.plan.remarks = append(d.plan.remarks, fmt.Sprintf("files that may have the text and were left as they are, because no tool takes their names: %d", unnamed))
	}
	return counts, nil
}

func tooMany(found []workspace.Path, most int) error {
	const named = 50
	var names []string
	for _, p := range found[:min(len(found), named)] {
		names = append(names, p.String())
	}
	return fault.New(contract.ResourceLimit, "the text is in more files than are changed at once").
		WithHint("narrow it with paths or fileGlob, or do it in several calls").With("files", names).With("maxFiles", most)
}

// replaceIn plans one file; 0 says that it does not have the text, or is not text.
func (d *drafter) replaceIn(p workspace.Path, in replaceInFilesIn) (int, error) {
	_, before, hash, err := d.current(p.String(), "")
	if notThere(err) {
		return 0, nil // it went meanwhile
	}
	if err != nil {
		return 0, err
	}
	r, err := edit.ReplaceAll(before, in.Find, in.Replace, d.editing())
	if errors.Is(err, contract.UnsupportedEncoding) {
		return 0, nil
	}
	if err != nil {
		return 0, at(err, p)
	}
	if r.Total() == 0 {
		return 0, nil
	}
	if len(d.plan.Files) >= in.MaxFiles {
		return r.Total(), nil // it is only counted: there are too many
	}
	f := modified(p, before, hash, r.After)
	f.notes = r.Notes
	return r.Total(), d.add(f)
}

// searchable is what of a text can be searched for: the longest part of it without a line
// break, at most findChars.
func searchable(text string) string {
	best := ""
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if len(line) > len(best) {
			best = line
		}
	}
	if utf8.RuneCountInString(best) > findChars {
		best = string([]rune(best)[:findChars])
	}
	return best
}
