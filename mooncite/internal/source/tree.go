package source

import (
	"errors"
	"strings"
	"sync"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/transcript"
)

// Rules say which names below a root matter. The zero value uses those of package
// transcript.
type Rules struct {
	Shape   func(transcript.File) transcript.Shape
	Descend func(o evidence.Origin, rel string) bool
}

func (r Rules) orTranscript() Rules {
	if r.Shape == nil {
		r.Shape = transcript.ShapeOf
	}
	if r.Descend == nil {
		r.Descend = transcript.Descend
	}
	return r
}

// Tree is an open root. It is safe for use by several goroutines.
type Tree struct {
	Root
	rules   Rules
	earlier []Root // usable roots before this one that overlap it

	mu   sync.Mutex       // guards dirs
	dirs []*safefile.Root // the last one is in use; a root that was replaced leaves its old one
}

// Open opens a usable root of the set for discovery and reading.
func (s Set) Open(i int, rules Rules) (*Tree, error) {
	r := s.Roots[i]
	if r.State != Usable {
		return nil, fault.New(RootUnavailable, "a %s root cannot be read", r.Origin).WithHint("see mooncite status")
	}
	dir, err := safefile.OpenRoot(r.Dir, safefile.RefuseLinks)
	if err != nil {
		return nil, fault.Wrap(RootUnavailable, err, "a %s root cannot be opened", r.Origin).WithHint("see mooncite status")
	}
	t := &Tree{Root: r, dirs: []*safefile.Root{dir}, rules: rules.orTranscript()}
	for _, o := range s.Roots[:i] {
		if o.State == Usable && (within(o.Dir, r.Dir) || within(r.Dir, o.Dir)) {
			t.earlier = append(t.earlier, o)
		}
	}
	return t, nil
}

// Close releases the root. Files opened from it stay open.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, d := range t.dirs {
		errs = append(errs, d.Close())
	}
	t.dirs = nil
	return errors.Join(errs...)
}

// dir is the root's open directory.
func (t *Tree) dir() *safefile.Root {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dirs[len(t.dirs)-1]
}

// follow makes sure that the open directory is the one the root's path leads to now: a
// home that was mounted meanwhile, or a root that was moved away and made anew.
func (t *Tree) follow() error {
	now, err := safefile.OpenRoot(t.Dir, safefile.RefuseLinks)
	if err != nil {
		return err
	}
	a, err := now.Stat(".")
	if err == nil {
		// An old one that cannot be asked any more has lost its file system.
		if b, gone := t.dir().Stat("."); gone != nil || !a.SameFile(b.Identity) {
			t.mu.Lock()
			t.dirs = append(t.dirs, now)
			t.mu.Unlock()
			return nil
		}
	}
	now.Close()
	return err
}

// Describe names a file of the tree for people.
func (t *Tree) Describe(rel string) string { return Describe(t.Origin, t.Digest, rel) }

// StoredPath is how a file of the tree is named outside it.
func (t *Tree) StoredPath(rel string) string { return evidence.StoredPath(t.Origin, t.Digest, rel) }

// claimed reports whether an earlier root gives the file out already.
func (t *Tree) claimed(rel string) bool {
	for _, o := range t.earlier {
		below, ok := strings.CutPrefix(strings.TrimSuffix(t.Dir, "/")+"/"+rel, strings.TrimSuffix(o.Dir, "/")+"/")
		if !ok || t.rules.Shape(transcript.File{Origin: o.Origin, Rel: below}) == transcript.None {
			continue
		}
		reached := true
		for i, c := range below {
			if c == '/' && !t.rules.Descend(o.Origin, below[:i]) {
				reached = false
				break
			}
		}
		if reached {
			return true
		}
	}
	return false
}

// gone reports whether an error says that a name does not lead to a file any more.
func gone(err error) bool {
	return errors.Is(err, safefile.ErrNotRegular) || notThere(err)
}
