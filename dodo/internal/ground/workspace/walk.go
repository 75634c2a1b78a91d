package workspace

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"localmcp/internal/safefile"
)

// The bounds of a walk (spec dodo-behaviour 4.1).
const (
	MaxWalkDepth   = 32
	MaxWalkEntries = 100_000
)

// ErrCut says that a walk came to one of its bounds: what was visited is right, and there is
// more.
var ErrCut = errors.New("the walk came to its bounds")

// WalkOptions say what a walk visits.
type WalkOptions struct {
	Start Path // a directory, or one file
	// Ignored visits what the ordinary layer leaves out, too. The start itself is never
	// left out.
	Ignored    bool
	MaxEntries int // at most MaxWalkEntries, which 0 means
	MaxDepth   int // of names below the start; at most MaxWalkDepth, which 0 means
	// Workers above 1 visit in parallel and in no order. Else the order is that of the
	// names' bytes, a directory before what is in it.
	Workers int
}

// Visit is an entry a walk came to: a regular file, or a directory before its entries. Links,
// FIFOs, sockets and devices are not visited, nor is what is secret or protected. It may be
// used until the function it was given to returns.
type Visit struct {
	Path Path
	Type safefile.Type
	Err  error // a directory that could not be read

	t    *Tree
	dir  *safefile.Dir // the one the entry is in
	name string
}

// Stat tells about the entry.
func (v *Visit) Stat() (Info, error) {
	in, err := v.dir.Stat(v.name)
	if err != nil {
		return Info{}, v.t.lookup(v.Path, err)
	}
	return infoOf(in), nil
}

// Open opens the file, with the conditions of [Tree.Open].
func (v *Visit) Open() (*File, error) {
	f, in, err := v.dir.Open(v.name)
	if err != nil {
		return nil, v.t.lookup(v.Path, err)
	}
	return v.t.admit(v.Path, f, in)
}

// Walk visits what is below the start. When f returns fs.SkipDir for a directory, what is in
// it is not visited; when it returns another error, the walk ends with that. With several
// workers f is called by several goroutines at once; all have returned when Walk returns.
func (t *Tree) Walk(ctx context.Context, o WalkOptions, f func(Visit) error) error {
	w := &walker{t: t, ctx: ctx, f: f}
	w.max = bound(o.MaxEntries, MaxWalkEntries)
	w.depth = bound(o.MaxDepth, MaxWalkDepth)
	in, err := t.Stat(o.Start)
	if err != nil {
		return err
	}
	if in.Type != safefile.Directory {
		one, err := t.Open(o.Start)
		if err != nil {
			return err
		}
		one.Close()
		d, err := t.openDir(o.Start.Parent())
		if err != nil {
			return err
		}
		defer d.Close()
		return f(Visit{Path: o.Start, Type: safefile.Regular, t: t, dir: d, name: o.Start.Base()})
	}
	d, err := t.openDir(o.Start)
	if err != nil {
		return err
	}
	start := &node{dir: d, path: o.Start}
	if !o.Ignored {
		if w.ordinary, start.rules, err = t.levels(o.Start); err != nil {
			d.Close()
			return err
		}
	}
	if o.Workers > 1 {
		err = w.parallel(start, o.Workers)
	} else {
		w.inOrder = true
		err = w.ordered(start)
	}
	if err == nil && w.cut.Load() {
		return ErrCut
	}
	return err
}

func bound(n, most int) int {
	if n <= 0 || n > most {
		return most
	}
	return n
}

type walker struct {
	t       *Tree
	ctx     context.Context // of one Walk, which ends before it returns
	f       func(Visit) error
	max     int
	depth   int
	inOrder bool
	seen    atomic.Int64
	cut     atomic.Bool
	keeper  *keeper // looks for what is kept instead of what may be seen; nil in other walks

	mu       sync.Mutex // over reading ignore files
	ordinary *ordinary  // nil when nothing is left out
}

// node is an open directory of a walk.
type node struct {
	dir   *safefile.Dir
	path  Path
	depth int
	rules *level
	git   Path // the git directory that it is, or is in; a keeper's walk alone knows
	inGit bool
	users atomic.Int32 // in parallel: who still needs dir
}

// item is an entry that is to be visited.
type item struct {
	path Path
	name string
	dir  bool
}

// list reads the entries of a directory that are to be visited.
func (w *walker) list(n *node) ([]item, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	all, err := n.dir.Entries()
	if err != nil {
		return nil, w.t.lookup(n.path, err)
	}
	if w.ordinary != nil {
		w.mu.Lock()
		n.rules = w.ordinary.enter(n.rules, n.dir, n.path, all)
		w.mu.Unlock()
	}
	if w.keeper != nil {
		if w.seen.Add(int64(len(all))) > int64(w.max) {
			w.cut.Store(true)
			return nil, nil
		}
		return w.keeper.items(n, all), nil
	}
	kept := w.t.visible(w.ordinary, n.rules, n.path, all)
	if w.inOrder {
		order(kept)
	}
	if room := int64(w.max) - w.seen.Add(int64(len(kept))) + int64(len(kept)); room < int64(len(kept)) {
		w.cut.Store(true)
		kept = kept[:max(room, 0)]
	}
	return kept, nil
}

// visible is what callers see of a directory they see.
func (t *Tree) visible(o *ordinary, l *level, dir Path, all []safefile.Entry) []item {
	if !dir.IsRoot() && gitShaped(all) {
		return nil
	}
	list := make([]item, 0, len(all))
	for _, e := range all {
		if e.Type != safefile.Regular && e.Type != safefile.Directory {
			continue
		}
		i := item{dir.Join(e.Name), e.Name, e.Type == safefile.Directory}
		if t.guard.judge(i.path, i.name) == reachable && (o == nil || !o.leavesOut(l, i.path, i.name, i.dir)) {
			list = append(list, i)
		}
	}
	return list
}

func order(list []item) {
	slices.SortFunc(list, func(a, b item) int { return strings.Compare(a.name, b.name) })
}

// enter opens and visits a directory of n. It is nil when nothing in it is to be visited.
func (w *walker) enter(n *node, i item) (sub *node, err error) {
	v := Visit{Path: i.path, Type: safefile.Directory, t: w.t, dir: n.dir, name: i.name}
	d, err := n.dir.Sub(i.name)
	if err == nil && w.keeper != nil {
		if err = d.Searchable(); err != nil {
			d.Close()
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, safefile.ErrNotDirectory):
		return nil, nil // it went away, or became something else
	case err != nil:
		v.Err = w.t.lookup(i.path, err)
		if err := w.f(v); err != fs.SkipDir {
			return nil, err
		}
		return nil, nil
	}
	defer func() {
		if sub == nil {
			d.Close()
		}
	}()
	if w.t.foreign(d) {
		return nil, nil
	}
	if err := w.f(v); err == fs.SkipDir {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if w.keeper != nil && w.keeper.closed(i.path, n.depth+1) {
		w.keeper.add(&w.keeper.kept.Closed, i.path)
		return nil, nil
	}
	if n.depth+1 >= w.depth {
		if w.depth >= MaxWalkDepth { // not a depth that was asked for
			w.cut.Store(true)
		}
		return nil, nil
	}
	return &node{dir: d, path: i.path, depth: n.depth + 1, rules: n.rules, git: n.git, inGit: n.inGit}, nil
}

// ordered visits what is in a directory, and closes it.
func (w *walker) ordered(n *node) error {
	defer n.dir.Close()
	list, err := w.list(n)
	if err != nil {
		return err
	}
	for _, i := range list {
		if !i.dir {
			if err := w.file(n, i); err != nil {
				return err
			}
			continue
		}
		sub, err := w.enter(n, i)
		if err == nil && sub != nil {
			err = w.ordered(sub)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) file(n *node, i item) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.f(Visit{Path: i.path, Type: safefile.Regular, t: w.t, dir: n.dir, name: i.name})
}

// task is a part of a parallel walk: files of an open directory, or a directory in it.
type task struct {
	in    *node
	files []item
	sub   item // when files is nil
}

// chunk is how many files of one directory a worker takes at once, so that a large
// directory is shared.
const chunk = 64

type pool struct {
	mu    sync.Mutex
	more  sync.Cond
	tasks []task // a stack: few directories are open at once
	busy  int
	err   error
	panic any // of a worker, for the goroutine that called Walk
}

func (w *walker) parallel(start *node, workers int) error {
	p := &pool{}
	p.more.L = &p.mu
	start.users.Store(1)
	p.busy = 1 // the listing of the start
	w.split(p, start)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				t, ok := p.take()
				if !ok {
					return
				}
				w.run(p, t)
			}
		})
	}
	wg.Wait()
	if p.panic != nil {
		panic(p.panic)
	}
	return p.err
}

// take waits for a task; there is none when all is done or something failed.
func (p *pool) take() (task, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.tasks) == 0 && p.busy > 0 {
		p.more.Wait()
	}
	if len(p.tasks) == 0 {
		return task{}, false
	}
	t := p.tasks[len(p.tasks)-1]
	p.tasks = p.tasks[:len(p.tasks)-1]
	p.busy++
	return t, true
}

// done ends a task, after what it left to do was added.
func (p *pool) done(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.err == nil {
		p.err = err
	}
	if p.busy--; p.busy == 0 {
		p.more.Broadcast()
	}
}

func (p *pool) failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil
}

// errPanicked ends a walk whose function panicked.
var errPanicked = errors.New("a visit panicked")

func (w *walker) run(p *pool, t task) {
	defer t.in.release()
	defer func() {
		if v := recover(); v != nil {
			p.mu.Lock()
			p.panic = v
			p.mu.Unlock()
			p.done(errPanicked)
		}
	}()
	if p.failed() {
		p.done(nil)
		return
	}
	if t.files == nil {
		sub, err := w.enter(t.in, t.sub)
		if err != nil || sub == nil {
			p.done(err)
			return
		}
		sub.users.Store(1)
		w.split(p, sub)
		return
	}
	for _, i := range t.files {
		if err := w.file(t.in, i); err != nil {
			p.done(err)
			return
		}
	}
	p.done(nil)
}

// split lists a directory, adds what is to be done in it, and ends the task of listing it.
func (w *walker) split(p *pool, n *node) {
	defer n.release()
	list, err := w.list(n)
	if err != nil {
		p.done(err)
		return
	}
	var files []item
	var tasks []task
	for _, i := range list {
		if i.dir {
			tasks = append(tasks, task{in: n, sub: i})
		} else {
			files = append(files, i)
		}
	}
	for part := range slices.Chunk(files, chunk) {
		tasks = append(tasks, task{in: n, files: part})
	}
	n.users.Add(int32(len(tasks)))
	p.mu.Lock()
	p.tasks = append(p.tasks, tasks...)
	p.mu.Unlock()
	p.more.Broadcast()
	p.done(nil)
}

func (n *node) release() {
	if n.users.Add(-1) == 0 {
		n.dir.Close()
	}
}

// Entry is a name in a directory.
type Entry struct {
	Name string
	Type safefile.Type // a regular file or a directory
}

// ReadDir lists a directory, sorted by bytes: what callers may see of it, and with ignored
// what the ordinary layer leaves out, too.
func (t *Tree) ReadDir(p Path, ignored bool) ([]Entry, error) {
	d, err := t.openDir(p)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	items, err := t.items(d, p, ignored)
	if err != nil {
		return nil, err
	}
	list := make([]Entry, len(items))
	for i, it := range items {
		list[i] = Entry{it.name, safefile.Regular}
		if it.dir {
			list[i].Type = safefile.Directory
		}
	}
	return list, nil
}

// items is what callers see of one directory, sorted by bytes.
func (t *Tree) items(d *safefile.Dir, p Path, ignored bool) ([]item, error) {
	all, err := d.Entries()
	if err != nil {
		return nil, t.lookup(p, err)
	}
	var o *ordinary
	var rules *level
	if !ignored {
		if o, rules, err = t.levels(p); err != nil {
			return nil, err
		}
		rules = o.enter(rules, d, p, all)
	}
	list := t.visible(o, rules, p, all)
	order(list)
	return list, nil
}
