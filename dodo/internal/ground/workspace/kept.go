package workspace

import (
	"context"
	"io/fs"
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
	Git     []string // what git keeps for itself: directories and the files in their place
	Fixed   []string // directories whose names make one of the secrets secret
}

// The bounds of looking for what is kept. A larger workspace is refused: a secret that was
// not found would not be hidden.
const (
	maxKeptEntries = 4_000_000
	maxKeptDepth   = 512
)

// Kept looks through the whole workspace, also through what the ordinary layer leaves out.
// RESOURCE_LIMIT says that it is too large for that.
func (t *Tree) Kept(ctx context.Context) (Kept, error) {
	var k Kept
	var mu sync.Mutex
	note := func(p Path, l layer) {
		path := filepath.Join(t.Root(), filepath.FromSlash(p.rel))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case l == secret:
			k.Secrets = append(k.Secrets, path)
			if name := p.Base(); t.guard.judge(Path{name}, name) != secret {
				for dir := p.Parent(); !dir.IsRoot(); dir = dir.Parent() {
					k.Fixed = append(k.Fixed, filepath.Join(t.Root(), filepath.FromSlash(dir.rel)))
				}
			}
		case strings.EqualFold(p.Base(), ".git"):
			k.Git = append(k.Git, path)
		}
	}
	d, err := t.openDir(Path{})
	if err != nil {
		return k, err
	}
	w := &walker{t: t, ctx: ctx, max: maxKeptEntries, depth: maxKeptDepth, kept: note, f: func(v Visit) error {
		if v.Type == safefile.Directory && v.Err != nil {
			return fs.SkipDir // what the server cannot read its commands cannot
		}
		return nil
	}}
	if err := w.parallel(&node{dir: d}, keptWorkers); err != nil {
		return k, err
	}
	if w.cut.Load() {
		return k, fault.New(contract.ResourceLimit, "the workspace has more than %d entries, or more than %d levels, too many to find the secret ones among them", maxKeptEntries, maxKeptDepth).
			WithHint("choose a smaller directory as the workspace")
	}
	slices.Sort(k.Secrets)
	slices.Sort(k.Git)
	slices.Sort(k.Fixed)
	k.Fixed = slices.Compact(k.Fixed)
	return k, nil
}

// keptWorkers look in parallel: reading directories is most of the work.
const keptWorkers = 4
