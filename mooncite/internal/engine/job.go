package engine

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

// batchText is how much text one publication takes, give or take a source.
const batchText = 64 << 20

// bulkBytes is how much there has to be read for the index to be set for much.
const bulkBytes = 8 << 20

// work is what a job has to do.
type work struct {
	list    []todo
	drop    []*index.Source // not authorized any more
	rebuild bool
}

func (w *work) empty() bool {
	return len(w.list) == 0 && len(w.drop) == 0 && !w.rebuild
}

// A job reads changed sources into the index. One runs at a time in a process.
type job struct {
	work
	began  time.Time
	done   chan struct{}
	err    error        // set before done is closed
	files  atomic.Int64 // done
	bytes  atomic.Int64 // done
	total  int64        // bytes
	failed atomic.Int64 // changes that stay to be read
}

func (j *job) running() bool {
	select {
	case <-j.done:
		return false
	default:
		return true
	}
}

// wait waits for the job's end, at most for a while, and reports whether it came.
func (j *job) wait(ctx context.Context, most time.Duration) bool {
	if most <= 0 {
		return !j.running()
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-j.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// watchOver waits for the job's end and reports how far it is.
func (j *job) watchOver(ctx context.Context, report func(done, total float64, message string)) error {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-j.done:
			return j.err
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
			if report != nil {
				report(float64(j.bytes.Load()), float64(j.total), fmt.Sprintf("%d of %d files", j.files.Load(), len(j.list)))
			}
		}
	}
}

// left is how many sources are still to be read.
func (j *job) left() int {
	if j.running() {
		return max(1, len(j.list)+len(j.drop)-int(j.files.Load()))
	}
	return int(j.failed.Load())
}

func (j *job) progress() *Progress {
	return &Progress{FilesDone: int(j.files.Load()), Files: len(j.list), BytesDone: j.bytes.Load(), Bytes: j.total, Rebuilding: j.rebuild}
}

// start begins a job unless one runs, and returns the one that runs.
func (e *Engine) start(w work) *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.job != nil && e.job.running() {
		return e.job
	}
	j := &job{began: e.now(), done: make(chan struct{}), work: w}
	for _, t := range w.list {
		if t.Kind != source.Removed {
			j.total += t.ID.Size
		}
	}
	// Oldest first, so that later documents are newer text.
	slices.SortStableFunc(j.list, func(a, b todo) int { return cmp.Compare(a.ID.MtimeNS, b.ID.MtimeNS) })
	e.job = j
	e.users++
	e.work.Go(func() {
		defer close(j.done)
		defer e.release()
		defer yieldFor(j.total)()
		j.err = e.run(j)
		e.finish(j)
	})
	return j
}

// run does a job's work. A panic ends the job, not the server.
func (e *Engine) run(j *job) error {
	return contained("reading histories", func() error {
		if j.rebuild {
			return e.runRebuild(e.life, j)
		}
		return e.runRefresh(e.life, j)
	})
}

// yieldFor gives the scheduler more threads than cores while much is read, so that
// the kernel lets a request in at once, and returns what undoes it.
func yieldFor(bytes int64) func() {
	if bytes < bulkBytes {
		return func() {}
	}
	before := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 6)
	return func() { runtime.GOMAXPROCS(before) }
}

// finish notes what became of a job.
func (e *Engine) finish(j *job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	outcome := published
	if j.err != nil {
		outcome = retainedLastGood
		if !e.store.Exists() {
			outcome = Unavailable
		}
		e.seeded = -1 // look at everything anew
	}
	if j.rebuild {
		e.last.rebuild = outcome
	} else {
		e.last.refresh = outcome
	}
	if j.err == nil {
		e.last.at = e.now().UnixMilli()
	}
}

// accept tells the watches what was read.
func (e *Engine) accept(done []accepted) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range done {
		switch {
		case a.removed:
			a.w.watch.Forget(a.known.Rel)
		default:
			a.w.watch.Accept(a.known)
		}
	}
	_ = e.store.Read(context.WithoutCancel(e.life), func(s *index.Snapshot) error {
		if s != nil {
			e.seeded = s.Number()
		}
		return nil
	})
}

// accepted is a change that was published.
type accepted struct {
	w       *watched
	known   source.Known
	removed bool
}

// runRefresh publishes the job's changes in batches.
func (e *Engine) runRefresh(ctx context.Context, j *job) error {
	held, err := e.store.Lock(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := e.forgotten.load(); err != nil { // it may have grown while this waited
		return err
	}
	if err := e.dropAll(ctx, j); err != nil {
		return err
	}
	bulk, text := j.total >= bulkBytes, int64(0)
	for rest := j.list; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, n, taken, err := e.publishSome(ctx, j, rest, bulk)
		text += taken
		if err != nil {
			return err
		}
		e.accept(done)
		rest = rest[n:]
	}
	if text >= bulkBytes {
		return e.store.Merge(ctx)
	}
	return nil
}

// dropAll takes out what is not authorized any more, in small publications.
func (e *Engine) dropAll(ctx context.Context, j *job) error {
	const most = 20000 // spans in one publication
	for rest := j.drop; len(rest) > 0; {
		n, spans := 0, int64(0)
		for n < len(rest) && (n == 0 || spans+rest[n].Spans <= most) {
			spans += rest[n].Spans
			n++
		}
		var units [][]index.Unit
		if err := e.store.Read(ctx, func(s *index.Snapshot) error {
			for _, src := range rest[:n] {
				us, err := s.Units(src.ID)
				if err != nil {
					return err
				}
				units = append(units, us)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := e.store.Publish(ctx, false, func(b *index.Batch) error {
			for i, src := range rest[:n] {
				if err := b.DropSource(src, units[i]); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		j.files.Add(int64(n))
		rest = rest[n:]
	}
	if len(j.drop) > 0 {
		e.accept(nil)
	}
	return nil
}

// publishSome publishes as many of the changes as make a batch. n is how many it
// dealt with; those it could not read now are not among done.
func (e *Engine) publishSome(ctx context.Context, j *job, list []todo, bulk bool) (done []accepted, n int, text int64, err error) {
	filesBefore, bytesBefore := j.files.Load(), j.bytes.Load()
	err = e.store.Publish(ctx, bulk, func(b *index.Batch) error {
		done, n = done[:0], 0
		for _, t := range list {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, err := e.take(ctx, b, t, false)
			if err != nil {
				return err
			}
			if a == nil {
				j.failed.Add(1)
			} else {
				done = append(done, *a)
			}
			n++
			j.files.Add(1)
			j.bytes.Add(t.ID.Size)
			if text = b.TextBytes(); text >= e.batch {
				break
			}
		}
		return nil
	})
	if err != nil {
		j.files.Store(filesBefore)
		j.bytes.Store(bytesBefore)
	}
	return done, n, text, err
}

// runRebuild reads everything into a new index and puts it in force.
func (e *Engine) runRebuild(ctx context.Context, j *job) error {
	held, err := e.store.Lock(ctx)
	if err != nil {
		return err
	}
	defer held.Unlock()
	if err := e.forgotten.load(); err != nil { // it may have grown while this waited
		return err
	}
	var done []accepted
	err = e.store.Rebuild(ctx, func(b *index.Batch) error {
		for _, t := range j.list {
			if err := ctx.Err(); err != nil {
				return err
			}
			a, err := e.take(ctx, b, t, true)
			if err != nil {
				return err
			}
			if a == nil {
				j.failed.Add(1)
			} else {
				done = append(done, *a)
			}
			j.files.Add(1)
			j.bytes.Add(t.ID.Size)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.accept(done)
	return nil
}

// RebuildOut says what a rebuild did.
type RebuildOut struct {
	StatusOut
	Sources int     `json:"sources"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Text is the result in words.
func (r RebuildOut) Text() string {
	return fmt.Sprintf("Rebuilt from %d files, %d bytes, in %.1f s.\n", r.Sources, r.Bytes, r.Seconds) + r.StatusOut.Text()
}

// Rebuild reads all histories into a new index and puts it in force.
func (e *Engine) Rebuild(ctx context.Context, report func(done, total float64, message string)) (RebuildOut, error) {
	began := e.now()
	if err := e.forgotten.load(); err != nil {
		return RebuildOut{}, err
	}
	var j *job
	for j == nil || !j.rebuild { // a request's refresh may come first
		for j = e.current(); j != nil && j.running(); j = e.current() {
			if err := j.watchOver(ctx, report); err != nil && ctx.Err() != nil {
				return RebuildOut{}, err
			}
		}
		set := e.places.Resolve()
		list, err := e.everything(ctx, set, e.authorizations(set))
		if err != nil {
			return RebuildOut{}, err
		}
		j = e.start(work{list: list, rebuild: true})
		err = j.watchOver(ctx, report)
		e.release()
		if err != nil && (j.rebuild || ctx.Err() != nil) {
			return RebuildOut{}, err
		}
	}
	st, err := e.Status(ctx)
	return RebuildOut{StatusOut: st, Sources: len(j.list), Bytes: j.total, Seconds: e.now().Sub(began).Seconds()}, err
}

// everything lists all files as if none had ever been read. The caller releases it.
func (e *Engine) everything(ctx context.Context, set source.Set, f *freshness) ([]todo, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retire()
	e.bury()
	var list []todo
	for i := range set.Roots {
		r := set.Roots[i]
		if r.State != source.Usable {
			continue
		}
		tree, err := set.Open(i, source.Rules{})
		if err != nil {
			return nil, err
		}
		w := &watched{root: r, tree: tree, watch: source.NewWatch(tree, nil, nil)}
		e.watched[watchKey{r.Origin, r.Digest}] = w
		changes, err := w.watch.Changes(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			list = append(list, todo{w, c})
		}
	}
	e.users++
	return list, nil
}
