package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"localmcp/internal/confine"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/source"
)

// The marker says whose state directory it is.
const (
	markerName = ".mooncite-state"
	marker     = "mooncite-go-state-v1\n"
)

// Options say how an engine is used.
type Options struct {
	// Background starts reading the histories at once, without waiting for a request.
	Background bool
	// Patience is how long a recall or an inspection waits for newer text to be read; 0
	// means a quarter of a second, which is right where a request must be answered at once.
	Patience time.Duration
	Now      func() time.Time // nil means the clock
	// Prepared says that [Prepare] was called.
	Prepared bool
	// Confinement is what the process that made the engine says of itself in status.
	Confinement Confinement
}

// Engine answers recalls, inspections and status over one state directory. It is safe
// for use by several goroutines; several processes may each have one.
type Engine struct {
	places     source.Places
	store      *index.Store
	dir        *safefile.Root
	alive      *privdir.Held // keeps a purge away
	forgotten  *tombstones
	now        func() time.Time
	patience   time.Duration
	batch      int64 // batchText
	recent     recent
	namespaces namespaces
	generation generations
	timings    timings
	learned    func(context.Context) *LearnedMemory // nil: switched off at the start
	confined   Confinement

	stop context.CancelFunc // ends background work
	work sync.WaitGroup     // of background work
	life context.Context

	mu      sync.Mutex // guards what follows; held while looking for changes
	watched map[watchKey]*watched
	retired []*watched // replaced, but a request or a job may still read from them
	users   int        // requests and jobs that may
	seeded  int64      // publication that the watches know
	job     *job       // the last one; running or done
	last    lastRun

	calm atomic.Pointer[freshness] // what the last look found that found nothing to read
}

// lastRun is what became of the last refresh and rebuild.
type lastRun struct {
	refresh, rebuild string
	at               int64 // of the last successful refresh
}

// Outcomes of a refresh or rebuild.
const (
	notRun           = "not_run"
	published        = "published"
	unchanged        = "unchanged"
	retainedLastGood = "retained_last_good"
)

// Open opens the state directory, making it if needed, and refuses one that is not
// mooncite's.
func Open(ctx context.Context, places source.Places, o Options) (*Engine, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Patience <= 0 {
		o.Patience = recallBudget
	}
	if o.Confinement == (Confinement{}) {
		o.Confinement.Level = string(confine.None)
	}
	if !o.Prepared {
		if err := Prepare(places); err != nil {
			return nil, err
		}
	}
	dir, err := privdir.Open(places.StateDir, "the state directory")
	if err != nil {
		return nil, err
	}
	alive, err := privdir.TryLockShared(filepath.Join(places.StateDir, engineLock))
	if err != nil {
		return nil, errors.Join(beingPurged(err), dir.Close())
	}
	store, err := index.Open(places.StateDir)
	if err != nil {
		return nil, errors.Join(err, alive.Unlock(), dir.Close())
	}
	e := &Engine{places: places, store: store, dir: dir, alive: alive, forgotten: &tombstones{dir: dir}, now: o.Now, patience: o.Patience, batch: batchText, confined: o.Confinement, watched: map[watchKey]*watched{},
		last: lastRun{refresh: notRun, rebuild: notRun, at: evidence.NoTime}}
	e.timings.now = o.Now
	e.life, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if o.Background {
		e.work.Go(func() { _ = e.Refresh(e.life, nil) }) // what goes wrong shows at the first request
	}
	return e, nil
}

// Prepare makes the state directory and marks it as mooncite's, as Open does. A process
// that confines itself does it before, when it still may make directories.
func Prepare(places source.Places) error {
	if o, inside := places.Inside(places.StateDir); inside {
		return fault.New(evidence.CodeState, "the state directory lies inside the histories of %s, which are never written to", o).
			WithHint("set MOONCITE_STATE_DIR to a directory outside every root, or take a registered one out with `mooncite source remove`; `mooncite source list` shows them")
	}
	if err := places.Housed(places.StateDir); err != nil {
		return err
	}
	return claim(places.StateDir)
}

// Close ends background work and closes the files. What was being read is read again
// next time.
func (e *Engine) Close() error {
	e.stop()
	e.work.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.retire()
	e.users = 0
	e.bury()
	return errors.Join(e.store.Close(), e.alive.Unlock(), e.dir.Close())
}

// claim makes the state directory and its marker. A directory that holds anything
// else is another program's and stays as it is.
func claim(path string) error {
	dir, err := privdir.Create(path, "the state directory", markerName)
	if err != nil {
		return err
	}
	defer dir.Close()
	marked, err := ours(dir)
	if marked || err != nil {
		return err
	}
	entries, _, err := dir.ReadDir(".")
	if err != nil {
		return fault.Wrap(evidence.CodeState, err, "the state directory cannot be read").WithHint("look at its permissions")
	}
	for _, en := range entries {
		if en.Name == markerName { // another process made it just now, and perhaps more
			_, err := ours(dir)
			return err
		}
		if !isTemp(en.Name) {
			return foreignState()
		}
	}
	if err := dir.WriteFileAtomic(markerName, []byte(marker), 0o600); err != nil {
		return fault.Wrap(evidence.CodeState, err, "the state directory cannot be written").WithHint("look at the space and the permissions of the disk it is on")
	}
	return nil
}

// ours reports whether the directory has a marker; another program's is an error.
func ours(dir *safefile.Root) (bool, error) {
	f, _, err := dir.Open(markerName)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, unreadableMarker(err)
	}
	defer f.Close()
	return true, checkMarker(f)
}

// checkMarker says whether a marker is mooncite's.
func checkMarker(r io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(r, int64(len(marker))+1))
	switch {
	case err != nil:
		return unreadableMarker(err)
	case string(b) != marker:
		return foreignState()
	}
	return nil
}

func unreadableMarker(err error) error {
	return fault.Wrap(evidence.CodeState, err, "the state directory's marker cannot be read").
		WithHint("look at the permissions of %s in it and at the health of the disk", markerName)
}

// isTemp reports whether a name is what a crashed first start can have left.
func isTemp(name string) bool {
	return len(name) > len(markerName)+2 && name[:len(markerName)+2] == "."+markerName+"."
}

func foreignState() error {
	return fault.New(evidence.CodeState, "the state directory belongs to another program").
		WithHint("set MOONCITE_STATE_DIR to a directory of its own, or remove the other program's state with its own purge and uninstall")
}

// plain is an error's sentence for answers.
func plain(err error) string {
	if errors.Is(err, index.ErrStale) {
		return "the index was made by another version of mooncite and is being made anew"
	}
	f := fault.From(err)
	if f.Hint == "" {
		return f.Error() + "."
	}
	return f.Error() + "; " + f.Hint + "."
}

func (e *Engine) outcomes() (refresh, rebuild string, at *string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last.refresh, e.last.rebuild, stamp(e.last.at)
}
