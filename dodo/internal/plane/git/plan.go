package git

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// planned is one file of a commit that is not made yet.
type planned struct {
	Path   string `json:"path"`
	Status string `json:"status"` // A, M, D or T, as git writes them; empty for what was staged as new and is gone again
	// ID is git's name for the content that is committed: zeros for a file that goes.
	ID string `json:"id"`

	name string // in the repository
	add  bool   // it is taken from the work tree
}

// plan is what a commit will have in it.
type plan struct {
	head    string // the commit it follows; empty for the first
	branch  string
	files   []planned
	skipped int // secret files that all, or a directory, would have taken in
	nested  int // repositories in the work tree
	idle    int // of the paths that the caller named, those at which nothing was changed
}

// mostFiles bounds one commit.
const mostFiles = 20_000

// draft finds out what a commit would have in it. It changes nothing.
func (g *session) draft(ctx context.Context, in commitIn, paths []workspace.Path) (*plan, error) {
	if err := g.settled(); err != nil {
		return nil, err
	}
	if err := g.matched(ctx, paths); err != nil {
		return nil, err
	}
	st, _, err := g.state(ctx, asking{paths: paths, tracked: !in.All && len(paths) == 0, noRenames: true})
	if err != nil {
		return nil, err
	}
	list, err := g.staged(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := g.allowed(list); err != nil {
		return nil, err
	}
	p := &plan{head: st.head, branch: st.branch}
	files := map[string]planned{}
	for _, d := range list {
		at, _ := g.locate(d.path)
		files[d.path] = planned{Path: at.Shown(), Status: string(d.status), ID: d.id, name: d.path}
	}
	for _, e := range st.entries {
		if !e.pending() || !in.All && (len(paths) == 0 || !g.asked(e, paths)) {
			continue
		}
		at, where := g.locate(e.path)
		switch {
		case where == outside:
			continue
		case where == kept:
			p.skipped++
			continue
		case strings.HasSuffix(e.path, "/"):
			p.nested++
			continue
		}
		f := planned{Path: at.Shown(), Status: string(e.xy[1]), name: e.path, add: true}
		switch {
		case e.kind == '?' || files[e.path].Status == "A" && f.Status != "D":
			f.Status = "A"
		case f.Status == "D" && files[e.path].Status == "A":
			f.Status = ""
		}
		files[e.path] = f
	}
	for _, f := range files {
		p.files = append(p.files, f)
	}
	for _, dir := range paths {
		if !slices.ContainsFunc(st.entries, func(e entry) bool { return g.asked(e, []workspace.Path{dir}) }) {
			p.idle++
		}
	}
	slices.SortFunc(p.files, func(a, b planned) int { return strings.Compare(a.name, b.name) })
	if len(p.files) > mostFiles {
		return nil, fault.New(contract.ResourceLimit, "the commit would have more than %d files", mostFiles).
			WithHint("name paths and commit a part; large folders that are not tracked belong into .gitignore")
	}
	if err := g.plain(ctx, p.adds()); err != nil {
		return nil, err
	}
	return p, g.identify(ctx, p.files)
}

// asked reports whether an entry is what the caller named.
func (g *session) asked(e entry, paths []workspace.Path) bool {
	at, where := g.locate(e.path)
	return where != outside && within(at, paths)
}

// adds are the names of the files that are taken from the work tree.
func (p *plan) adds() (names []string) {
	for _, f := range p.files {
		if f.add {
			names = append(names, f.name)
		}
	}
	return names
}

// real are the files that the commit will have in it.
func (p *plan) real() []planned {
	return slices.DeleteFunc(slices.Clone(p.files), func(f planned) bool { return f.Status == "" })
}

// digest is over everything that is committed, also what a preview has no room for.
func (p *plan) digest() (string, error) {
	return contract.Digest(map[string]any{"head": p.head, "branch": p.branch, "files": p.files})
}

// settled refuses a repository in the middle of something that a commit would end or lose.
func (g *session) settled() error {
	d, err := openGit(g.repo.dir)
	if err != nil {
		return gitFault(err)
	}
	defer d.close()
	if d.any("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "sequencer") {
		return fault.New(contract.Conflict, "a merge, rebase, cherry-pick or revert is under way").
			WithHint("finish or abort it with git itself, in run_command or by the owner; git_commit makes ordinary commits only")
	}
	return nil
}

// allowed holds everything that is staged against what a caller may commit.
func (g *session) allowed(list []difference) error {
	var away, secrets, conflicts, closed int
	for _, d := range list {
		p, where := g.locate(d.path)
		switch {
		case d.status == 'U':
			conflicts++
		case where == outside:
			away++
		case where == kept && errors.Is(g.Tree.Access(p), contract.SecretPathDenied):
			secrets++
		case where == kept:
			closed++
		}
	}
	unstage := "the owner can look with git diff --cached --name-only, and unstage with git restore --staged"
	switch {
	case away > 0:
		return fault.New(contract.PathDenied, "%d staged files are outside of the workspace", away).WithHint("%s", unstage)
	case secrets > 0:
		return fault.New(contract.SecretPathDenied, "%d staged files are kept secret from callers", secrets).WithHint("%s", unstage)
	case closed > 0:
		return fault.New(contract.PathDenied, "%d staged files are protected", closed).WithHint("%s", unstage)
	case conflicts > 0:
		return fault.New(contract.Conflict, "there are files with conflicts that are not resolved").
			WithHint("resolve them and stage the result with git itself; git_status lists them")
	}
	return nil
}

// plain refuses files that a filter may change on their way in: none is run here, and without
// it something else would be committed. Whether there is such a filter the owner's own
// configuration says, too, or the system's, so the attribute alone counts.
func (g *session) plain(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	out, err := g.runner.run(ctx, call{args: []string{"check-attr", "-z", "--stdin", "filter"}, in: lines(names, "\x00"), slow: true})
	if err != nil {
		return err
	}
	f := strings.Split(string(out.bytes), "\x00")
	for i := 0; i+2 < len(f); i += 3 {
		if !slices.Contains([]string{"unspecified", "set", "unset", ""}, f[i+2]) {
			p, _ := g.locate(f[i])
			return fault.New(contract.NotSupported, "a file goes through a filter of the repository, which is not run here").
				WithHint("stage it with git itself, in run_command: git add PATH. Then call git_commit without paths and all").With("path", p.Shown())
		}
	}
	return nil
}

// identify gives the files of the work tree git's names for their content, as git would keep
// it.
func (g *session) identify(ctx context.Context, files []planned) error {
	var names []string
	var at []int
	for i, f := range files {
		if !f.add {
			continue
		}
		if f.Status == "D" || f.Status == "" {
			files[i].ID = "0" // it goes
			continue
		}
		full := filepath.Join(g.repo.top, filepath.FromSlash(f.name))
		st, err := os.Lstat(full)
		switch {
		case err != nil:
			return moved()
		case st.Mode().IsRegular():
			names, at = append(names, f.name), append(at, i)
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			if err != nil {
				return moved()
			}
			files[i].ID = g.blob(target)
		}
	}
	ids, err := g.hash(ctx, names)
	for i, id := range ids {
		files[at[i]].ID = id
	}
	return err
}

// hash gives the names of regular files' content, as git would keep it.
func (g *session) hash(ctx context.Context, names []string, options ...string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote(n)
	}
	out, err := g.runner.run(ctx, call{args: append([]string{"hash-object", "--stdin-paths"}, options...), in: lines(quoted, "\n"), fails: []int{128}, slow: true})
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out.bytes))
	if out.code != 0 || len(ids) != len(names) {
		return nil, fault.New(contract.Conflict, "a file went away or cannot be read").WithHint("try again; git_status shows what is there").With("stderr", out.errors).Retry()
	}
	return ids, nil
}

// blob is git's name for a short content.
func (g *session) blob(content string) string {
	var h hash.Hash = sha1.New()
	if g.config.get("extensions.objectformat") == "sha256" {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00%s", len(content), content)
	return hex.EncodeToString(h.Sum(nil))
}

// moved is the fault of files that were changed while they were looked at.
func moved() error {
	return fault.New(contract.Conflict, "the files or the index were changed meanwhile").WithHint("look at git_status and make the call again").Retry()
}

// lines joins names, each with an end.
func lines(names []string, end string) []byte {
	return []byte(strings.Join(names, end) + end)
}

// gone reports whether an id is that of a file that is not there.
func gone(id string) bool { return strings.Trim(id, "0") == "" }
