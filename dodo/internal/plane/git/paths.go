package git

import (
	"context"
	"errors"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// place says where a path of the repository is for callers.
type place uint8

const (
	shown   place = iota
	kept          // secret or protected: counted, never shown
	outside       // of the workspace
)

// locate gives the workspace's path of a path that git named, which may be any bytes: an index
// is a file that anybody can write.
func (g *session) locate(name string) (workspace.Path, place) {
	rel, in := strings.CutPrefix(name, g.repo.prefix)
	if !in || rel == "" {
		return workspace.Path{}, outside
	}
	var p workspace.Path
	for part := range strings.SplitSeq(strings.TrimSuffix(rel, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return workspace.Path{}, outside
		}
		p = p.Join(part)
	}
	if g.Tree.Access(p) != nil {
		return p, kept
	}
	return p, shown
}

// name is the path of the repository for one of the workspace; the root's is the prefix, which
// is empty for a repository of its own.
func (g *session) name(p workspace.Path) string {
	if p.IsRoot() {
		return strings.TrimSuffix(g.repo.prefix, "/")
	}
	return g.repo.prefix + p.String()
}

// wanted reads paths as callers write them. What is closed is so without a repository, too.
func (s *Service) wanted(paths []string) ([]workspace.Path, error) {
	list := make([]workspace.Path, 0, len(paths))
	for _, path := range paths {
		p, err := workspace.ParsePath(path)
		if err == nil {
			err = s.Tree.Access(p)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// matched refuses paths at which nothing is and nothing was: neither in the work tree nor in
// what git tracks, nor in the last commit. A path that is written wrongly must not look like
// one where nothing was changed.
func (g *session) matched(ctx context.Context, paths []workspace.Path) error {
	var missing []workspace.Path
	for _, p := range paths {
		if _, err := g.Tree.Stat(p); errors.Is(err, contract.NotFound) || errors.Is(err, safefile.ErrNotDirectory) {
			missing = append(missing, p)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	index, err := g.runner.run(ctx, call{args: append([]string{"ls-files", "-z"}, g.scope(missing)...)})
	if err != nil {
		return err
	}
	// 128: there is no commit yet.
	head, err := g.runner.run(ctx, call{args: append([]string{"ls-tree", "-z", "--name-only", "HEAD"}, g.scope(missing)...), fails: []int{128}})
	if err != nil {
		return err
	}
	var known []workspace.Path
	for _, name := range strings.Split(string(index.bytes)+string(head.bytes), "\x00") {
		if p, where := g.locate(name); where != outside {
			known = append(known, p)
		}
	}
	missing = slices.DeleteFunc(missing, func(p workspace.Path) bool {
		return slices.ContainsFunc(known, func(k workspace.Path) bool { return k.Within(p) })
	})
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return fault.New(contract.NotFound, "there is nothing at a path that was named, neither among the files nor in what git has of them").
			WithHint("look at detail.path: is it written as git_status and list_files write it, relative to the workspace's root?").With("path", missing[0].Shown())
	}
	shown := make([]string, len(missing))
	for i, p := range missing {
		shown[i] = p.Shown()
	}
	return fault.New(contract.NotFound, "there is nothing at %d of the paths that were named, neither among the files nor in what git has of them", len(missing)).
		WithHint("look at detail.paths: are they written as git_status and list_files write them, relative to the workspace's root?").With("paths", shown)
}

// within reports whether a path is one of these or below one; no paths at all take in
// everything.
func within(p workspace.Path, dirs []workspace.Path) bool {
	for _, d := range dirs {
		if p.Within(d) {
			return true
		}
	}
	return len(dirs) == 0
}

// scope are the arguments that keep git to the workspace, or to paths in it. They are taken
// literally.
func (g *session) scope(paths []workspace.Path) []string {
	args := []string{"--"}
	for _, p := range paths {
		if name := g.name(p); name != "" {
			args = append(args, name)
		} else {
			return []string{"--"} // all of it
		}
	}
	if len(paths) == 0 && g.repo.prefix != "" {
		args = append(args, g.repo.prefix)
	}
	return args
}

// noRepository is the fault of an operation that needs one.
func noRepository() error {
	return fault.New(contract.NotFound, "the workspace is not in a git repository").WithHint("the owner can make it one: git init")
}
