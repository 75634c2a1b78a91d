package workspace

import (
	"context"
	"io"
	"strings"

	"localmcp/dodo/internal/contract"
)

// Listing is a directory as a tree, in the form list_files gives it.
type Listing = listed

// List is the workspace as a tree of so many levels, with at most so many entries and about
// so many bytes of JSON. cut says that there is more.
func (t *Tree) List(ctx context.Context, depth, entries, bytes int) (tree *Listing, cut bool, err error) {
	l := lister{t: t, entries: entries, bytes: bytes}
	tree = &listed{Path: Path{}.Shown(), Type: "dir"}
	err = l.list(ctx, tree, depth)
	return tree, l.cut, err
}

// Elsewhere is another project as an argument projectId names it.
func Elsewhere(ctx context.Context, projects Projects, c contract.Call, id string) (*Tree, *Project, error) {
	return (&Service{projects: projects}).from(ctx, c, id)
}

// longestHead is how much of git's HEAD is looked at, in bytes.
const longestHead = 512

// Repository says whether the workspace's root is one of git, and which branch is checked
// out there, as far as its own files say it. Nothing is run, and callers do not reach
// these files.
func (t *Tree) Repository() (is bool, branch string) {
	if _, err := t.root.Stat(".git"); err != nil {
		return false, ""
	}
	f, _, err := t.root.Open(".git/HEAD")
	if err != nil {
		return true, "" // a worktree or a submodule has a pointer there
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, longestHead))
	if err != nil {
		return true, ""
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: refs/heads/")
	if !ok {
		return true, ""
	}
	return true, name
}
