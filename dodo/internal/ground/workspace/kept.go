package workspace

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Kept is what a workspace keeps from callers, by absolute paths, sorted.
type Kept struct {
	Secrets []string // files and directories, without what is below one of them
	Git     []string // what git keeps for itself: directories and the files and links in their place
	Fixed   []string // directories whose names make one of the secrets secret, or lead to one of git's in another
	Closed  []string // directories that could not be looked through, without what is below them
}

// The bounds of looking for what is kept. A larger workspace is refused: a secret that was
// not found would not be hidden. A directory that is deeper, or has a longer path, is closed.
const (
	maxKeptEntries = 4_000_000
	maxKeptDepth   = 512
	maxKeptPath    = 3072 // bytes; the system takes 4095, and names in the directory come behind
)

// Kept looks through the whole workspace, also through what the ordinary layer and the guard
// leave out: what a command moved there would else be open to the next one. RESOURCE_LIMIT says
// that it is too large for that.
func (t *Tree) Kept(ctx context.Context) (Kept, error) {
	d, err := t.openDir(Path{})
	if err != nil {
		return Kept{}, err
	}
	if err := d.Searchable(); err != nil && os.Geteuid() != 0 {
		d.Close()
		return Kept{}, t.lookup(Path{}, err)
	}
	k := &keeper{t: t}
	w := &walker{t: t, ctx: ctx, max: maxKeptEntries, depth: maxKeptDepth, keeper: k, f: k.visit}
	if err := w.parallel(&node{dir: d}, keptWorkers); err != nil {
		return Kept{}, err
	}
	if w.cut.Load() {
		return Kept{}, fault.New(contract.ResourceLimit, "the workspace has more than %d entries, too many to find the secret ones among them", maxKeptEntries).
			WithHint("choose a smaller directory as the workspace")
	}
	return k.sorted(), nil
}

// keptWorkers look in parallel: reading directories is most of the work.
const keptWorkers = 4

// keeper notes what a walk finds.
type keeper struct {
	t    *Tree
	mu   sync.Mutex // guards kept
	kept Kept
}

func (k *keeper) add(list *[]string, p Path) {
	path := filepath.Join(k.t.Root(), filepath.FromSlash(p.rel))
	k.mu.Lock()
	defer k.mu.Unlock()
	*list = append(*list, path)
}

// visit is told of directories before they are looked through.
func (k *keeper) visit(v Visit) error {
	if v.Err != nil {
		k.add(&k.kept.Closed, v.Path)
		return fs.SkipDir
	}
	return nil
}

// closed reports whether a directory can only be closed as a whole, by its place.
func (k *keeper) closed(p Path, depth int) bool {
	return depth >= maxKeptDepth || len(k.t.Root())+1+len(p.rel) > maxKeptPath
}

// items are the directories in one that are to be looked through. What is kept is noted.
func (k *keeper) items(n *node, all []safefile.Entry) (list []item) {
	if gitShaped(all) {
		n.git, n.inGit = n.path, true
		if !gitNamed(n.path) { // else it was noted by its name
			k.add(&k.kept.Git, n.path)
		}
	} else if gitNamed(n.path) {
		n.git, n.inGit = n.path, true
	}
	for _, e := range all {
		if e.Type == safefile.Other {
			continue
		}
		p := n.path.Join(e.Name)
		if strings.EqualFold(e.Name, ".git") {
			k.add(&k.kept.Git, p)
		}
		if e.Type == safefile.Link || slices.Contains(k.t.guard.own, p) {
			continue // a link has no content; what is the installation's own is hidden by that
		}
		dir := e.Type == safefile.Directory
		switch {
		case n.inGit && k.branches(n.git, p):
			if dir {
				list = append(list, item{p, e.Name, true})
			} else if k.secretIn(n.git, p) && !k.branch(n.dir, e.Name) {
				k.add(&k.kept.Secrets, p)
			}
		case k.t.guard.judge(p, e.Name) == secret:
			k.add(&k.kept.Secrets, p)
			if k.t.guard.judge(Path{e.Name}, e.Name) != secret {
				for up := p.Parent(); !up.IsRoot(); up = up.Parent() {
					k.add(&k.kept.Fixed, up)
				}
			}
		case dir:
			list = append(list, item{p, e.Name, true})
		}
	}
	return list
}

// branches reports whether a path is where a git directory has its branches and tags, and the
// logs of them: those have whatever names people gave them.
func (k *keeper) branches(git, p Path) bool {
	return p.Within(git.Join("refs")) || p.Within(git.Join("logs"))
}

// secretIn reports whether a path below a git directory, or a directory on the way, has a
// secret name.
func (k *keeper) secretIn(git, p Path) bool {
	for ; p != git; p = p.Parent() {
		if k.t.guard.judge(p, p.Base()) == secret {
			return true
		}
	}
	return false
}

// branch reports whether a file says what git writes for a branch or a log: the name of a commit
// or of another branch; lines that begin with the names of two commits.
func (k *keeper) branch(dir *safefile.Dir, name string) bool {
	f, _, err := dir.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 512))
	if err != nil {
		return false
	}
	commit := func(b []byte) bool {
		return (len(b) == 40 || len(b) == 64) && len(bytes.Trim(b, "0123456789abcdef")) == 0
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	words := bytes.SplitN(line, []byte(" "), 3)
	return len(text) == 0 || len(words) == 3 && commit(words[0]) && commit(words[1]) || len(rest) == 0 && (commit(line) || bytes.HasPrefix(line, []byte("ref: refs/")))
}

// sorted is what was found, and the directories between git's that are in one another.
func (k *keeper) sorted() Kept {
	kept := &k.kept
	dirs := map[string]bool{}
	for _, dir := range kept.Git {
		dirs[dir] = true
	}
	for _, dir := range kept.Git {
		var between []string
		for up := filepath.Dir(dir); len(up) > len(k.t.Root()); up = filepath.Dir(up) {
			if dirs[up] {
				kept.Fixed = append(kept.Fixed, between...)
				break
			}
			between = append(between, up)
		}
	}
	for _, list := range []*[]string{&kept.Secrets, &kept.Git, &kept.Fixed, &kept.Closed} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return *kept
}
