package engine

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

type watchKey struct {
	origin evidence.Origin
	digest string
}

// watched is one usable root with what is known of its files.
type watched struct {
	root  source.Root
	tree  *source.Tree
	watch *source.Watch
}

// freshness is how the index stands to the files, as one request found it.
type freshness struct {
	set      source.Set
	roots    []source.Root
	auth     map[watchKey]bool
	groups   []ErrorGroup
	problems []Problem
	links    int64
	number   int64 // publication of the index that the files were compared with
	calm     bool  // nothing had to be read
	waiting  int   // files with changes that are not read
	job      *job  // the work that is reading them, if the request did not wait for its end
}

func (f *freshness) authorized(o evidence.Origin, digest string) bool {
	return f.auth[watchKey{o, digest}]
}

// busy does not ask whether the work has ended since: what the request sees may be
// from before that.
func (f *freshness) busy() bool { return f.job != nil }

func (f *freshness) pending() int { return f.waiting }

func (f *freshness) progress() *Progress {
	if !f.busy() {
		return nil
	}
	return f.job.progress()
}

// todo is a change with where it is.
type todo struct {
	w *watched
	source.Change
}

// fresh looks for changes and has them read, waiting for that at most budget. quick
// looks at nothing: it only says what is authorized.
func (e *Engine) fresh(ctx context.Context, budget time.Duration, quick bool) (*freshness, error) {
	if err := e.forgotten.load(); err != nil {
		return nil, err
	}
	set := e.places.Resolve()
	f := e.authorizations(set)
	if quick {
		return f, nil
	}
	if j := e.current(); j != nil && j.running() {
		if !j.wait(ctx, budget-e.now().Sub(j.began)) {
			f.job, f.waiting = j, max(1, j.left())
			return f, nil
		}
	}
	list, err := e.look(ctx, set, f)
	if err != nil {
		return nil, err
	}
	defer e.release()
	work, err := e.rest(ctx, f)
	if err != nil {
		return nil, err
	}
	work.list = list
	if work.empty() {
		e.note(unchanged)
		f.calm = true
		e.calm.Store(f)
		return f, nil
	}
	j := e.start(work)
	if !j.wait(ctx, budget) {
		f.job, f.waiting = j, max(1, j.left())
		return f, nil
	}
	f.waiting = j.left()
	if j.err != nil && !errors.Is(j.err, context.Canceled) {
		if !e.store.Exists() {
			return nil, j.err
		}
		f.trouble(j.err)
	}
	return f, nil
}

// same reports whether nothing had to be read in both of two looks, and they found the same.
func (f *freshness) same(g *freshness) bool {
	return f.calm && g.calm && f.number == g.number && f.links == g.links &&
		slices.Equal(f.groups, g.groups) && slices.Equal(f.problems, g.problems) &&
		slices.EqualFunc(f.roots, g.roots, func(a, b source.Root) bool {
			return a.Registration == b.Registration && a.Digest == b.Digest && a.State == b.State
		})
}

// ahead answers from the index while it is still being looked whether that is what the
// files hold; most times it is. answer is called with each freshness to answer by and
// says from which publication it did; the last call counts.
func (e *Engine) ahead(ctx context.Context, answer func(*freshness) (number int64, err error)) error {
	guess := e.calm.Load()
	if guess == nil {
		f, err := e.fresh(ctx, e.patience, false)
		if err != nil {
			return err
		}
		_, err = answer(f)
		return err
	}
	type look struct {
		f   *freshness
		err error
	}
	looked := make(chan look, 1)
	go func() {
		var l look
		l.err = contained("looking for changes", func() (err error) {
			l.f, err = e.fresh(ctx, e.patience, false)
			return err
		})
		looked <- l
	}()
	number, err := answer(guess)
	l := <-looked
	switch {
	case l.err != nil:
		return l.err
	case err == nil && number == l.f.number && l.f.same(guess):
		return nil
	}
	_, err = answer(l.f)
	return err
}

// trouble notes that newer text could not be put into the index; what was there
// before still answers.
func (f *freshness) trouble(err error) {
	x := fault.From(err)
	f.groups = append(f.groups, ErrorGroup{Origin: unknownOrigin, Reason: IndexWrite, Count: 1, FatalCount: 1, note: "newer text could not be indexed: " + x.Error()})
	f.problems = append(f.problems, Problem{Origin: unknownOrigin, Name: "index", ID: evidence.ShortName("index"), Reason: IndexWrite, Detail: x.Error(), Remedy: x.Hint})
	f.waiting = max(f.waiting, 1)
}

// Refresh reads everything that changed before it returns.
func (e *Engine) Refresh(ctx context.Context, report func(done, total float64, message string)) error {
	for range 3 { // what changes meanwhile is read too, within reason
		f, err := e.fresh(ctx, 0, false)
		if err != nil {
			return err
		}
		j := f.job
		if j == nil {
			return nil
		}
		if err := j.watchOver(ctx, report); err != nil {
			return err
		}
	}
	return nil
}

// authorizations takes the state of the roots.
func (e *Engine) authorizations(set source.Set) *freshness {
	f := &freshness{set: set, roots: set.Roots, auth: make(map[watchKey]bool, len(set.Roots))}
	if set.Problem != nil {
		f.groups = append(f.groups, ErrorGroup{Origin: unknownOrigin, Reason: source.Configuration, Count: 1, FatalCount: 1, note: set.Problem.Msg})
		f.problems = append(f.problems, Problem{Origin: unknownOrigin, Name: "sources.json", ID: evidence.ShortName("sources.json"), Reason: source.Configuration, Detail: set.Problem.Msg, Remedy: set.Problem.Hint})
	}
	for i := range set.Roots {
		r := &set.Roots[i]
		f.auth[watchKey{r.Origin, r.Digest}] = true
		if r.State != source.Refused {
			continue
		}
		f.groups = append(f.groups, ErrorGroup{Origin: string(r.Origin), Reason: r.Problem.Code, Count: 1, FatalCount: 1, note: r.Problem.Msg})
		f.problems = append(f.problems, Problem{Origin: string(r.Origin), Name: evidence.Visible(filepath.Base(r.Dir)), ID: evidence.ShortName(r.Digest), Reason: r.Problem.Code, Detail: r.Problem.Msg, Remedy: r.Problem.Hint})
	}
	return f
}

func (e *Engine) current() *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.job
}

func (e *Engine) note(outcome string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last.refresh, e.last.at = outcome, e.now().UnixMilli()
}

// look finds what changed in all usable roots. The caller releases it.
func (e *Engine) look(ctx context.Context, set source.Set, f *freshness) ([]todo, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.follow(ctx, set); err != nil {
		return nil, err
	}
	// Most of the time goes to the kernel, which can be asked by several at once.
	type seen struct {
		w       *watched
		changes []source.Change
		err     error
	}
	var all []*seen
	var asking sync.WaitGroup
	slots := make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))
	for i := range set.Roots {
		r := &set.Roots[i]
		w := e.watched[watchKey{r.Origin, r.Digest}]
		if w == nil {
			continue
		}
		s := &seen{w: w}
		all = append(all, s)
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			s.err = contained("looking for changes", func() (err error) {
				s.changes, err = w.watch.Changes(ctx)
				return err
			})
		})
	}
	asking.Wait()
	var list []todo
	for _, s := range all {
		if s.err != nil {
			return nil, s.err
		}
		for _, c := range s.changes {
			list = append(list, todo{s.w, c})
		}
		e.reportOn(s.w, f)
	}
	f.number = e.seeded
	e.users++
	return list, nil
}

// release says that a caller uses the trees it was given no longer.
func (e *Engine) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	e.bury()
}

// retire takes all watches out of use. e.mu is held.
func (e *Engine) retire() {
	for _, w := range e.watched {
		e.retired = append(e.retired, w)
	}
	e.watched = map[watchKey]*watched{}
}

// bury closes what was retired when nobody uses it. e.mu is held.
func (e *Engine) bury() {
	if e.users > 0 {
		return
	}
	for _, w := range e.retired {
		w.tree.Close()
	}
	e.retired = nil
}

// reportOn adds what a root's last look could not see.
func (e *Engine) reportOn(w *watched, f *freshness) {
	rep := w.watch.Report()
	for _, s := range rep.Skips {
		if s.Why == source.Link {
			f.links++
		}
	}
	for _, x := range rep.Failures {
		name := filepath.Base(x.Rel)
		if x.Rel == "." {
			name = filepath.Base(w.root.Dir)
		}
		f.groups = append(f.groups, ErrorGroup{Origin: string(w.root.Origin), Reason: x.Fault.Code, Count: 1, FatalCount: 1, note: x.Fault.Msg})
		f.problems = append(f.problems, Problem{Origin: string(w.root.Origin), Name: evidence.Visible(name), ID: evidence.ShortName(w.tree.StoredPath(x.Rel)), Reason: x.Fault.Code, Detail: x.Fault.Msg, Remedy: x.Fault.Hint})
	}
	n := int64(0)
	for _, s := range rep.Skips {
		if s.Why != source.BadName {
			continue
		}
		if n++; n <= maxNamed {
			f.problems = append(f.problems, Problem{Origin: string(w.root.Origin), Name: evidence.Visible(filepath.Base(s.Rel)), ID: evidence.ShortName(w.tree.StoredPath(s.Rel)), Reason: source.Discovery, Detail: "its name is not UTF-8", Remedy: "give it another name"})
		}
	}
	if n > 0 {
		f.groups = append(f.groups, ErrorGroup{Origin: string(w.root.Origin), Reason: source.Discovery, Count: n, FatalCount: n, note: string(w.root.Origin) + " files whose names are not UTF-8 are not read"})
	}
}

// follow keeps one watch for each usable root, seeded from the index. e.mu is held.
func (e *Engine) follow(ctx context.Context, set source.Set) error {
	var number int64
	known := map[watchKey][]source.Known{}
	seed := false
	err := e.store.Read(ctx, func(s *index.Snapshot) error {
		if s != nil {
			number = s.Number()
		}
		seed = number != e.seeded
		for i := range set.Roots {
			r := &set.Roots[i]
			w := e.watched[watchKey{r.Origin, r.Digest}]
			seed = seed || r.State == source.Usable && w == nil
		}
		if !seed || s == nil {
			return nil
		}
		for _, src := range s.Sources() {
			if src.Present {
				k := watchKey{src.Origin, src.Root}
				known[k] = append(known[k], source.Known{Rel: src.Rel, ID: src.Identity, SeenNS: src.SeenNS})
			}
		}
		return nil
	})
	if errors.Is(err, index.ErrStale) {
		seed, err = true, nil // everything is read anew
	}
	if err != nil {
		return err
	}
	if !seed && e.sameRoots(set) {
		return nil
	}
	next := map[watchKey]*watched{}
	for i := range set.Roots {
		r := set.Roots[i]
		if r.State != source.Usable {
			continue
		}
		tree, err := set.Open(i, source.Rules{})
		if err != nil {
			continue // it went away just now; the next look says so
		}
		k := watchKey{r.Origin, r.Digest}
		next[k] = &watched{root: r, tree: tree, watch: source.NewWatch(tree, known[k], nil)}
	}
	e.retire()
	e.bury()
	e.watched, e.seeded = next, number
	return nil
}

// sameRoots reports whether the usable roots are those that are watched. e.mu is held.
func (e *Engine) sameRoots(set source.Set) bool {
	n := 0
	for i := range set.Roots {
		if r := &set.Roots[i]; r.State == source.Usable {
			n++
			if e.watched[watchKey{r.Origin, r.Digest}] == nil {
				return false
			}
		}
	}
	return n == len(e.watched)
}

// rest finds what changes of files do not show: sources whose root is not authorized
// any more, and an index of another version.
func (e *Engine) rest(ctx context.Context, f *freshness) (work, error) {
	var w work
	err := e.store.Read(ctx, func(s *index.Snapshot) error {
		if s == nil {
			return nil
		}
		for _, src := range s.Sources() {
			if !f.authorized(src.Origin, src.Root) {
				w.drop = append(w.drop, src)
			}
		}
		return nil
	})
	if errors.Is(err, index.ErrStale) {
		return work{rebuild: true}, nil
	}
	slices.SortFunc(w.drop, func(a, b *index.Source) int { return cmp.Compare(a.ID, b.ID) })
	return w, err
}

// vanished lists sources whose root is gone as a whole, or is now read under its real
// path: their text stays, and so does
// what the index knows of their files, in case the root comes back.
func (f *freshness) vanished(s *index.Snapshot) []*index.Source {
	missing := map[watchKey]bool{}
	for i := range f.roots {
		if st := f.roots[i].State; st == source.Missing || st == source.Covered {
			missing[watchKey{f.roots[i].Origin, f.roots[i].Digest}] = true
		}
	}
	var out []*index.Source
	if len(missing) == 0 {
		return nil
	}
	for _, src := range s.Sources() {
		if src.Present && missing[watchKey{src.Origin, src.Root}] {
			out = append(out, src)
		}
	}
	return out
}
