package source

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/transcript"
)

const (
	// MaxDepth bounds how far below a root directories are read; the root has depth 0.
	MaxDepth = 64
	// What was written less than a granule of the file system's clock before it was
	// looked at may be written again without a trace. Clocks that show parts of a second
	// tick every 10 ms at the slowest; those that do not, every two seconds.
	granule       = 100 * time.Millisecond
	coarseGranule = 2 * time.Second
)

// Kind says what became of a file.
type Kind uint8

// The kinds. Recheck means that nothing seems changed, but that the file was written
// so shortly before it was looked at last that its times cannot prove it: its bytes
// have to be compared once more.
const (
	Added Kind = iota
	Replaced
	Recheck
	Removed
)

// A Change is one file that differs from what was accepted.
type Change struct {
	Kind  Kind
	Rel   string            // path below the root, "/" between parts
	Shape transcript.Shape  // None for Removed
	ID    safefile.Identity // as it is now; for Removed as it was
}

// Known is a file as somebody read it: what the caller keeps from one run to the next.
type Known struct {
	Rel    string
	ID     safefile.Identity
	SeenNS int64 // when ID was taken, nanoseconds since 1970 UTC; 0 makes it a Recheck
}

// Watch knows the directories of one root and the files in them, so that the next
// look costs one stat each. It is for one goroutine.
type Watch struct {
	tree *Tree
	now  func() time.Time
	top  *node
	dirs map[string]*node
	lost map[string]Known // accepted, but not found on disk
}

// A node is a directory.
type node struct {
	rel   string
	depth int
	id    safefile.Identity
	sure  bool // id was old enough when the names were read
	files []leaf
	subs  []*node
	skips []Skip
	fail  *Failure
}

// A leaf is a file found in a directory.
type leaf struct {
	rel   string
	shape transcript.Shape
	known bool // id and seen are those of an accepted read
	id    safefile.Identity
	seen  int64
}

// NewWatch starts a watch from what the caller has accepted earlier; nothing is looked
// at yet. now gives the time; nil means the clock.
func NewWatch(t *Tree, accepted []Known, now func() time.Time) *Watch {
	if now == nil {
		now = time.Now
	}
	w := &Watch{tree: t, now: now, lost: make(map[string]Known, len(accepted))}
	w.top = &node{rel: "."}
	w.dirs = map[string]*node{".": w.top}
	for _, k := range accepted {
		w.lost[k.Rel] = k
	}
	return w
}

// Changes looks at every known file and directory and reads the directories that
// changed. It gives what differs from what was accepted, sorted by path, and gives it
// again until [Watch.Accept] or [Watch.Forget] is called. Files below a directory that
// cannot be read are left out, not removed. The error is ctx's.
func (w *Watch) Changes(ctx context.Context) ([]Change, error) {
	if err := w.tree.follow(); err != nil {
		w.top.fail, w.top.sure = w.failure(".", Discovery, err, "cannot be opened"), false
		return nil, ctx.Err()
	}
	var out []Change
	if err := w.visit(ctx, w.top, &out); err != nil {
		return nil, err
	}
	unread := w.unread()
	for rel, k := range w.lost {
		if !slices.ContainsFunc(unread, func(dir string) bool { return dir == "." || strings.HasPrefix(rel, dir+"/") }) {
			out = append(out, Change{Kind: Removed, Rel: rel, ID: k.ID})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return cmp.Compare(a.Rel, b.Rel) })
	return out, nil
}

// Accept notes that the caller has read, or given up, a file in the state k.ID.
func (w *Watch) Accept(k Known) {
	delete(w.lost, k.Rel)
	if l := w.leaf(k.Rel); l != nil {
		l.known, l.id, l.seen = true, k.ID, k.SeenNS
		return
	}
	w.lost[k.Rel] = k // it vanished meanwhile
}

// Forget drops a removed file: it is not mentioned again unless it comes back.
func (w *Watch) Forget(rel string) { delete(w.lost, rel) }

func (w *Watch) leaf(rel string) *leaf {
	n := w.dirs[parent(rel)]
	if n == nil {
		return nil
	}
	if i, found := slices.BinarySearchFunc(n.files, rel, leaf.compare); found {
		return &n.files[i]
	}
	return nil
}

func (l leaf) compare(rel string) int { return cmp.Compare(l.rel, rel) }

// visit looks at a directory, its files, and the directories in it.
func (w *Watch) visit(ctx context.Context, n *node, out *[]Change) error {
	root := w.tree.dir()
	for stack := []*node{n}; len(stack) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.look(root, n, out) {
			stack = append(stack, n.subs...)
		}
	}
	return nil
}

// look does one directory and reports whether those in it can be looked at. They come
// after it, so what Peek asks of it holds.
func (w *Watch) look(root *safefile.Root, n *node, out *[]Change) bool {
	st, err := root.Peek(n.rel)
	if err == nil && st.Type != safefile.Directory {
		err = safefile.ErrNotDirectory
	}
	if err != nil {
		w.lose(n, err)
		return false
	}
	if !n.sure || st.Identity != n.id {
		if !w.read(root, n) {
			return false
		}
	}
	for i := range n.files {
		l := &n.files[i]
		st, err := root.Peek(l.rel)
		switch {
		case err == nil && st.Type == safefile.Regular:
			if l.known && st.Identity == l.id && Settled(l.id, l.seen) {
				continue
			}
			*out = append(*out, Change{Kind: l.kind(st.Identity), Rel: l.rel, Shape: l.shape, ID: st.Identity})
		case err == nil, notThere(err): // it went away since the names were read
			n.sure = false
			if l.known {
				*out = append(*out, Change{Kind: Removed, Rel: l.rel, ID: l.id})
			}
		default:
			n.sure = false // the names are read again next time, and with them this file
			n.fail = w.failure(l.rel, Metadata, err, "cannot be looked at")
		}
	}
	return true
}

func (l *leaf) kind(now safefile.Identity) Kind {
	switch {
	case !l.known:
		return Added
	case l.id != now:
		return Replaced
	}
	return Recheck
}

// Settled reports whether an identity was old enough, when it was taken, that a later
// change of the file must show. seen is in nanoseconds since 1970 UTC.
func Settled(id safefile.Identity, seen int64) bool {
	g := granule
	if id.CtimeNS%int64(time.Second) == 0 {
		g = coarseGranule
	}
	return id.CtimeNS+int64(g) <= seen
}

// lose handles a directory that cannot be opened. One that is gone takes its files
// with it; one that is only closed keeps them.
func (w *Watch) lose(n *node, err error) {
	if notThere(err) && n != w.top {
		w.drop(n)
		if up := w.dirs[parent(n.rel)]; up != nil {
			up.sure = false
		}
		return
	}
	n.fail, n.sure = w.failure(n.rel, Discovery, err, "cannot be opened"), false
}

// drop forgets a directory and all below it; what was accepted there is lost.
func (w *Watch) drop(n *node) {
	for stack := []*node{n}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = append(stack[:len(stack)-1], n.subs...)
		for _, l := range n.files {
			w.miss(l)
		}
		n.files, n.subs, n.sure = nil, nil, false
		delete(w.dirs, n.rel)
	}
}

func (w *Watch) miss(l leaf) {
	if l.known {
		w.lost[l.rel] = Known{l.rel, l.id, l.seen}
	}
}

// read reads the names of a directory anew and keeps what is known of them.
func (w *Watch) read(root *safefile.Root, n *node) bool {
	at := w.now().UnixNano() // before the reading: what changes later must show
	list, id, err := root.ReadDir(n.rel)
	if err != nil {
		if notThere(err) {
			w.lose(n, err)
		} else {
			n.fail, n.sure = w.failure(n.rel, Discovery, err, "cannot be read"), false
		}
		return false
	}
	n.fail, n.skips = nil, nil
	before := n.files
	subs := make(map[string]*node, len(n.subs))
	for _, s := range n.subs {
		subs[s.rel] = s
	}
	n.files, n.subs = nil, nil
	for _, e := range list {
		rel := n.join(e.Name)
		switch {
		case !w.wanted(rel, e.Type):
		case e.Type == safefile.Link:
			n.skips = append(n.skips, Skip{Link, rel})
		case e.Type == safefile.Other:
			n.skips = append(n.skips, Skip{Special, rel})
		case !utf8.ValidString(e.Name):
			n.skips = append(n.skips, Skip{BadName, rel})
		case e.Type == safefile.Directory:
			if n.depth == MaxDepth {
				n.fail = w.failure(rel, Limit, nil, "is too many directories deep")
				continue
			}
			s := subs[rel]
			if s == nil {
				s = &node{rel: rel, depth: n.depth + 1}
			}
			w.dirs[rel] = s
			delete(subs, rel)
			n.subs = append(n.subs, s)
		default:
			shape := w.shape(rel)
			if shape == transcript.Packed && unpackedBeside(list, e.Name) || w.tree.claimed(rel) {
				continue
			}
			n.files = append(n.files, w.found(leaf{rel: rel, shape: shape}, before))
		}
	}
	for _, l := range before {
		w.miss(l)
	}
	for _, rel := range slices.Sorted(maps.Keys(subs)) {
		w.drop(subs[rel])
	}
	n.id, n.sure = id, Settled(id, at)
	return true
}

// found gives a leaf what is known of it: both lists are sorted by name.
func (w *Watch) found(l leaf, before []leaf) leaf {
	if i, ok := slices.BinarySearchFunc(before, l.rel, leaf.compare); ok {
		o := before[i]
		l.known, l.id, l.seen = o.known, o.id, o.seen
		before[i].known = false // not missed
		return l
	}
	if k, ok := w.lost[l.rel]; ok {
		delete(w.lost, l.rel)
		l.known, l.id, l.seen = true, k.ID, k.SeenNS
	}
	return l
}

// wanted reports whether a name matters to its origin; a link or a name that is no
// text may be either a file or a directory.
func (w *Watch) wanted(rel string, t safefile.Type) bool {
	switch t {
	case safefile.Directory:
		return w.tree.rules.Descend(w.tree.Origin, rel)
	case safefile.Link:
		return w.shape(rel) != transcript.None || w.tree.rules.Descend(w.tree.Origin, rel)
	}
	return w.shape(rel) != transcript.None
}

func (w *Watch) shape(rel string) transcript.Shape {
	return w.tree.rules.Shape(transcript.File{Origin: w.tree.Origin, Rel: rel})
}

// unpackedBeside reports whether a packed file has a plain one of the same name
// beside it, which wins.
func unpackedBeside(list []safefile.Entry, packed string) bool {
	plain := strings.TrimSuffix(packed, ".zst")
	i, found := slices.BinarySearchFunc(list, plain, func(e safefile.Entry, name string) int { return cmp.Compare(e.Name, name) })
	return plain != packed && found && list[i].Type == safefile.Regular
}

func (n *node) join(name string) string {
	if n.rel == "." {
		return name
	}
	return n.rel + "/" + name
}

func parent(rel string) string {
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		return rel[:i]
	}
	return "."
}

func (w *Watch) failure(rel string, code fault.Code, err error, what string) *Failure {
	if rel == "." {
		f := fault.Wrap(RootUnavailable, err, "a %s root %s", w.tree.Origin, what)
		return &Failure{rel, f.WithHint("give yourself permission to read it, and look at the disk it is on")}
	}
	f := fault.Wrap(code, err, "%s %s", w.tree.Describe(rel), what)
	if code == Limit {
		return &Failure{rel, f.WithHint("move it nearer to its root")}
	}
	return &Failure{rel, f.WithHint("give yourself permission to read it, and look at the disk it is on")}
}
