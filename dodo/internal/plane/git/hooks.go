package git

import (
	"context"
	"os"
	"path/filepath"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// hookNames are the hooks that git runs around a commit, in their order.
var hookNames = []string{preCommit, prepareMessage, checkMessage, postCommit}

const (
	preCommit      = "pre-commit"
	prepareMessage = "prepare-commit-msg"
	checkMessage   = "commit-msg"
	postCommit     = "post-commit"
)

// hookDir is where the repository's hooks are.
func (g *session) hookDir() string {
	dir := g.config.get("core.hookspath")
	switch {
	case dir == "":
		return filepath.Join(g.repo.common, "hooks")
	case filepath.IsAbs(dir):
		return filepath.Clean(dir)
	}
	return filepath.Join(g.repo.top, dir)
}

// hooks are the names of those that are there. A directory outside of what is the repository's
// own is not looked at: any place may be named, also one that a look reaches over a network. All
// may be there then.
func (g *session) hooks() (list []string) {
	dir := g.hookDir()
	if !inside(g.repo.top, dir) && !inside(g.repo.common, dir) {
		return hookNames
	}
	for _, name := range hookNames {
		if st, err := os.Lstat(filepath.Join(dir, name)); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 {
			list = append(list, name)
		}
	}
	return list
}

// hook runs one hook in the sandbox, if it is there.
func (m *making) hook(ctx context.Context, index, name string, args ...string) error {
	c := call{
		args: []string{"hook", "run", "--ignore-missing", name}, write: true, cut: true, hooks: true,
		env: append(m.id.environ(m.Now()), "GIT_INDEX_FILE="+index),
	}
	if len(args) > 0 {
		c.args = append(append(c.args, "--"), args...)
	}
	out, err := m.runner.run(ctx, c)
	m.warnings = append(m.warnings, out.notes...)
	if err != nil && out.code > 0 && fault.From(err).Code == contract.InternalError {
		return fault.Wrap(contract.Conflict, err, "the repository's %s hook did not let the commit pass", name).
			WithHint("detail.output is what it says; noVerify leaves out the hooks that can refuse").With("output", out.errors)
	}
	return err
}
