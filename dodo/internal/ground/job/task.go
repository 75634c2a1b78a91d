package job

import (
	"context"
	"errors"
	"path"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// An Offer is a task that a repository describes in a file of its own.
type Offer struct {
	ID, Title string
	Program   string
	Args      []string
	Cwd       string // below the root; empty: the root
}

// A Recipe is a command that the workspace describes: text from outside, that nothing runs
// unless a caller asks for it and the owner's rules allow it.
type Recipe struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Program      string   `json:"program"`
	Args         []string `json:"args"`
	Cwd          string   `json:"cwd"`
	Source       string   `json:"source"`       // the file that describes it
	RecipeDigest string   `json:"recipeDigest"` // of the recipe and of that file
}

// tasksMost is how many tasks are listed (spec dodo-catalog 6).
const tasksMost = 50

// manifestBytes is how large a file may be that tasks are read from.
const manifestBytes = 1 << 20

// offersName is the file of offers.
const offersName = ".dodo.json"

// Tasks lists what can be run in the workspace by run_task, from the files at its root. No
// program is run for it. What cannot be read or understood offers nothing.
func (s *Service) Tasks(ctx context.Context) ([]Recipe, error) {
	all, err := s.recipes(ctx)
	if err != nil {
		return nil, err
	}
	return all[:min(len(all), tasksMost)], nil
}

// recipe finds a task that is still as it was listed.
func (s *Service) recipe(ctx context.Context, id, digest string) (Recipe, error) {
	all, err := s.recipes(ctx)
	if err != nil {
		return Recipe{}, err
	}
	for _, t := range all {
		if t.ID != id {
			continue
		}
		if t.RecipeDigest != digest {
			return t, fault.New(contract.Conflict, "the task, or the file that describes it, was changed since it was listed").
				WithHint("call project_overview again, look at what it would run now, and give the new recipeDigest")
		}
		return t, nil
	}
	return Recipe{}, fault.New(contract.NotFound, "there is no such task in the workspace").WithHint("project_overview lists the tasks; run_command runs any command")
}

// recipes reads the files that describe tasks.
func (s *Service) recipes(ctx context.Context) ([]Recipe, error) {
	top, err := s.Tree.ReadDir(workspace.Path{}, true)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, e := range top {
		if e.Type == safefile.Regular {
			has[e.Name] = true
		}
	}
	var all []Recipe
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !has[m.file] {
			continue
		}
		data, ok, err := s.manifest(m.file)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for _, t := range m.tasks(data, has, s.Offers) {
			if !usable(t) {
				continue
			}
			if t.Cwd = path.Clean(t.Cwd); t.Args == nil {
				t.Args = []string{}
			}
			t.Source = m.file
			if t.RecipeDigest, err = contract.Digest(map[string]any{
				"id": t.ID, "program": t.Program, "args": t.Args, "cwd": t.Cwd, "source": t.Source, "manifest": contract.Hash(data),
			}); err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// manifest reads a file of the root; ok is false when it is not for us.
func (s *Service) manifest(name string) (data []byte, ok bool, err error) {
	p, err := workspace.ParsePath(name)
	if err != nil {
		return nil, false, err
	}
	data, _, err = s.Tree.Read(p, manifestBytes)
	for _, code := range []fault.Code{contract.NotFound, contract.PathDenied, contract.SecretPathDenied, contract.FileTooLarge, contract.FileChanged} {
		if errors.Is(err, code) {
			return nil, false, nil
		}
	}
	return data, err == nil, err
}

// usable refuses a task that cannot be told from another by its name, or whose name would be
// taken for an option.
func usable(t Recipe) bool {
	if len(t.ID) > 128 || text.Visible(t.ID) != t.ID || text.Visible(t.Title) != t.Title || strings.ContainsAny(t.ID+t.Title, "\n\t") || t.Program == "" {
		return false
	}
	_, name, _ := strings.Cut(t.ID, ":")
	return name != "" && name[0] != '-'
}
