package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"localmcp/dodo/internal/ground/walls"
)

// A command may not turn repositories against whoever uses git there later. Each git directory
// is a mount of its own, so that it cannot be moved away, and what names programs in it, or
// leads elsewhere, cannot be changed.

// mostRepositories are the git directories that are guarded; others look empty.
const mostRepositories = 192

// steering are the files of a git directory that name programs or lead to another; hooks is a
// directory of programs.
var steering = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "info/attributes"}

// stores are the directories by which a git directory of another name is known.
var stores = []string{"objects", "refs"}

// arrange puts git's own in order, and sets apart the directories that are too many: the
// workspace's own come first, then those that are less deep.
func (p *Place) arrange(k Kept, write []string) Kept {
	git := slices.Clone(k.Git)
	for _, dir := range write {
		more, between := family(dir)
		git, k.Fixed = append(git, more...), append(slices.Clone(k.Fixed), between...)
	}
	own := filepath.Join(p.root, ".git")
	slices.SortFunc(git, func(a, b string) int {
		rank := func(path string) int {
			if walls.Within(own, path) || path == p.root {
				return 0
			}
			return 1
		}
		return cmp.Or(rank(a)-rank(b), strings.Count(a, "/")-strings.Count(b, "/"), strings.Compare(a, b))
	})
	k.Git, k.beyond = nil, nil
	dirs := 0
	for _, path := range slices.Compact(git) {
		if st, err := os.Lstat(path); err == nil && st.IsDir() {
			if dirs++; dirs > mostRepositories {
				k.beyond = append(k.beyond, path)
				continue
			}
		}
		k.Git = append(k.Git, path)
	}
	return k
}

// mostInFamily is how many entries are looked at for the git directories in one.
const mostInFamily = 20_000

// family is a git directory with those of its submodules and linked worktrees, and the
// directories between them.
func family(dir string) (git, between []string) {
	git = []string{dir}
	seen := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; err != nil || seen > mostInFamily || !e.IsDir() {
			return nil
		}
		switch e.Name() {
		case "objects", "refs", "logs", "hooks":
			return fs.SkipDir
		}
		_, head := os.Lstat(filepath.Join(path, "HEAD"))
		if path == dir || head != nil {
			return nil
		}
		git = append(git, path)
		for up := filepath.Dir(path); up != dir && !slices.Contains(git, up); up = filepath.Dir(up) {
			between = append(between, up)
		}
		return nil
	})
	return git, between
}

// guards are the mounts that do it, and those that keep directories where they are whose names
// make paths below them secret, or hidden, or lead from one git directory to another.
func (p *Place) guards(k Kept, fixed []string) (list []walls.Mount) {
	for _, path := range k.Git {
		st, err := os.Lstat(path)
		switch {
		case err != nil || st.Mode()&os.ModeSymlink != 0: // what is made there meanwhile is told
		case !st.IsDir():
			list = guard(list, path, false)
		default:
			list = p.guardAll(list, path)
		}
	}
	git := map[string]bool{}
	for _, dir := range k.Git {
		git[dir] = true
	}
	for _, dir := range slices.Concat(k.Fixed, fixed) {
		if !git[dir] {
			list = guard(list, dir, true)
		}
	}
	empty := map[string]bool{}
	for _, dir := range slices.Concat(k.Closed, k.beyond) {
		empty[dir] = true
	}
	list = slices.DeleteFunc(list, func(m walls.Mount) bool { return above(m.To, func(dir string) bool { return empty[dir] }) })
	slices.SortStableFunc(list, func(a, b walls.Mount) int { return strings.Compare(a.To, b.To) })
	sortMounts(list)
	return slices.CompactFunc(list, func(a, b walls.Mount) bool { return a.To == b.To })
}

// guardAll guards a git directory. Where a file of it is not there, and none could be made that
// stands in for it, nothing in the directory can be changed.
func (p *Place) guardAll(list []walls.Mount, dir string) []walls.Mount {
	if used(dir) {
		for _, name := range append([]string{"hooks"}, standInNames...) {
			if _, err := os.Lstat(filepath.Join(dir, name)); err != nil && dir != p.root {
				return guard(list, dir, false)
			}
		}
	}
	if dir != p.root {
		list = guard(list, dir, true)
	}
	for _, name := range steering {
		list = guardFound(list, filepath.Join(dir, name), false)
	}
	list = guardFound(list, filepath.Join(dir, "info"), true)
	if filepath.Base(dir) != ".git" {
		for _, name := range stores {
			list = guardFound(list, filepath.Join(dir, name), true)
		}
	}
	return list
}

// used reports whether a directory has something of a repository in it.
func used(dir string) bool {
	return slices.ContainsFunc([]string{"HEAD", "objects", "refs", "config"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// guardFound guards what is there and no link.
func guardFound(list []walls.Mount, path string, write bool) []walls.Mount {
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink == 0 {
		return guard(list, path, write)
	}
	return list
}

// guard adds one, when there is no link on the way to it.
func guard(list []walls.Mount, path string, write bool) []walls.Mount {
	fd, err := walls.Unlinked(path)
	if err != nil {
		return list
	}
	defer unix.Close(fd)
	id, err := walls.IdentityAt(fd)
	if err != nil {
		return list
	}
	return append(list, walls.Mount{From: path, To: path, Write: write, ID: id})
}
