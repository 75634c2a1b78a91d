package git

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
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
