package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

const (
	mib = 1 << 20

	goalFloor     = 1.3   // cold rebuild against floor
	goalRate      = 25.0  // MB of source bytes a second
	goalPeak      = 128.0 // MiB
	goalIndex     = 0.6   // index bytes to source bytes
	goalStart     = 35 * time.Millisecond
	goalInspect   = time.Millisecond
	goalStatus    = 10 * time.Millisecond // up to 100 MB
	goalAppend    = 30 * time.Millisecond // up to 100 MB
	goalPing      = 20 * time.Millisecond // up to 100 MB
	goalExport    = 1500 * time.Millisecond
	starts        = 15  // of a server, for the time to initialize
	statusCalls   = 20  // with nothing changed
	inspectMost   = 500 // candidates inspected
	appendRounds  = 5   // for each origin
	exportRounds  = 3   // conversations added
	exportMB      = 100 // size of the export of its own
	pingEvery     = 5 * time.Millisecond
	indexPatience = 10 * time.Minute
)

// recallGoal is how fast recall must be at a size.
type recallGoal struct {
	mb       int
	p50, p95 time.Duration
}

var recallGoals = []recallGoal{
	{10, 1 * time.Millisecond, 5 * time.Millisecond},
	{100, 2 * time.Millisecond, 10 * time.Millisecond},
	{1000, 3 * time.Millisecond, 20 * time.Millisecond},
}

// goalAt returns the goal of the smallest size that is not smaller than mb; a larger
// history has none.
func goalAt(mb int) recallGoal {
	for _, g := range recallGoals {
		if mb <= g.mb {
			return g
		}
	}
	return recallGoal{}
}

// upTo100 drops a goal that is set for 100 MB when the history is larger.
func upTo100(mb int, goal time.Duration) time.Duration {
	if mb > 100 {
		return 0
	}
	return goal
}

// bench is one run over all sizes.
type bench struct {
	options
	out, progress io.Writer
	table         table
}

// subject is the history being measured.
type subject struct {
	place
	mb      int
	name    string
	stats   corpus.Stats
	queries []corpus.Query
	serial  int // of the made-up words
}

func (b *bench) note(format string, args ...any) {
	if b.verbose {
		fmt.Fprintf(b.progress, format+"\n", args...)
	}
}

// row adds a row; value and goal decide its verdict.
func (b *bench) row(s *subject, what, measured, goal string, v verdict) {
	b.table.add(row{s.name, what, measured, goal, v})
}

// run measures every size, prints the table and tells whether a goal was missed.
func (b *bench) run(ctx context.Context) (missed bool, err error) {
	work, err := b.workDir()
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	fmt.Fprintf(b.out, "%s, %d CPUs, %s\n", filepath.Base(b.bin), runtime.NumCPU(), load())
	for _, mb := range b.sizes {
		if err := b.size(ctx, filepath.Join(work, fmt.Sprint(mb)), mb); err != nil {
			return false, err
		}
	}
	mb := min(exportMB, b.sizes[len(b.sizes)-1])
	if err := b.export(ctx, filepath.Join(work, "export"), mb); err != nil {
		return false, err
	}
	if err := b.table.print(b.out); err != nil {
		return false, err
	}
	fmt.Fprintln(b.out, "At the end:", load())
	return b.table.missed(), nil
}

func (b *bench) workDir() (string, error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(b.dir, "work-*")
}

// subject makes a user with a history of that size.
func (b *bench) subject(ctx context.Context, dir, name string, mb int, only evidence.Origin) (*subject, error) {
	b.note("%s: making the history", name)
	stored, err := b.stored(ctx, mb, only)
	if err != nil {
		return nil, err
	}
	p, err := newPlace(ctx, dir, stored)
	if err != nil {
		return nil, err
	}
	st, q, err := corpus.Load(p.home())
	return &subject{place: p, mb: mb, name: name, stats: st, queries: q}, err
}

// size measures everything that is measured on a history of all origins.
func (b *bench) size(ctx context.Context, dir string, mb int) error {
	s, err := b.subject(ctx, dir, fmt.Sprintf("%d MB", mb), mb, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	steps := []struct {
		name string
		run  func(context.Context, *subject) error
	}{
		{"cold rebuild", b.cold},
		{"start", b.start},
		{"cost of confinement", b.cost},
		{"recall and inspect", b.questions},
		{"append", b.growth},
		{"pings during the first index", b.pings},
	}
	for i, step := range steps {
		b.note("%s: %s", s.name, step.name)
		err := step.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			b.row(s, step.name, lastLines(err.Error()), "", failed)
			if i == 0 {
				return nil // without an index the rest says nothing
			}
		}
	}
	return nil
}

// cold builds the index of an empty state.
func (b *bench) cold(ctx context.Context, s *subject) error {
	u, err := b.rebuild(ctx, s)
	if err != nil {
		return err
	}
	rate := float64(s.stats.Bytes) / 1e6 / u.wall.Seconds()
	b.row(s, "cold rebuild", fmt.Sprintf("%s, %s CPU", show(u.wall), show(u.cpu)), "", info)
	b.row(s, "cold rebuild, source bytes", fmt.Sprintf("%.1f MB/s", rate), fmt.Sprintf(">= %.0f MB/s", goalRate), judge(-rate, -goalRate))
	peak := float64(u.peak) / mib
	b.row(s, "cold rebuild, peak memory", fmt.Sprintf("%.0f MiB", peak), fmt.Sprintf("<= %.0f MiB", goalPeak), judge(peak, goalPeak))
	size, err := treeBytes(s.state())
	if err != nil {
		return err
	}
	ratio := float64(size) / float64(s.stats.Bytes)
	b.row(s, "index size to source bytes", fmt.Sprintf("%.2f (%.1f MB)", ratio, float64(size)/1e6), fmt.Sprintf("<= %.1f", goalIndex), judge(ratio, goalIndex))

	bare, err := floor(s.state())
	goal := fmt.Sprintf("<= %.1f", goalFloor)
	if errors.Is(err, index.ErrEmpty) { // not an index of ours
		b.row(s, "cold rebuild to bare FTS5 insertion", "", goal, unmeasured)
		return nil
	}
	if err != nil {
		return fmt.Errorf("bare FTS5 insertion: %w", err)
	}
	factor := u.wall.Seconds() / bare
	b.row(s, "cold rebuild to bare FTS5 insertion", fmt.Sprintf("%.2f (%.2f s)", factor, bare), goal, judge(factor, goalFloor))
	return nil
}

// rebuild empties the state and runs the rebuild command.
func (b *bench) rebuild(ctx context.Context, s *subject) (usage, error) {
	if err := s.forget(); err != nil {
		return usage{}, err
	}
	out, u, err := measured(ctx, s.place, b.bin, "rebuild", "--json")
	if err != nil {
		return u, err
	}
	var told struct {
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal(out, &told); err != nil || told.Outcome == "" {
		return u, fmt.Errorf("rebuild --json printed no outcome: %.100q", out)
	}
	b.note("%s: rebuild: %s in %s", s.name, told.Outcome, show(u.wall))
	return u, nil
}

// open starts a server and opens the session.
func (b *bench) open(ctx context.Context, s *subject) (*server, time.Duration, error) {
	return open(ctx, b.bin, s.place)
}

func open(ctx context.Context, bin string, p place) (*server, time.Duration, error) {
	srv, err := serve(ctx, bin, p)
	if err != nil {
		return nil, 0, err
	}
	took, err := srv.initialize(ctx)
	if err != nil {
		return nil, 0, errors.Join(err, srv.close())
	}
	return srv, took, nil
}

// start measures the time from the start of the process to the answer of initialize.
func (b *bench) start(ctx context.Context, s *subject) error {
	var all times
	for range starts {
		srv, took, err := b.open(ctx, s)
		if err != nil {
			return err
		}
		if err := srv.close(); err != nil {
			return err
		}
		all = append(all, took)
	}
	b.row(s, "process start to initialize, median of 15", fmt.Sprintf("%s, worst %s", show(all.median()), show(all.worst())), goalTime(goalStart), judge(all.median(), goalStart))
	return nil
}

// word makes a word that stands nowhere in the history.
func (s *subject) word() string {
	s.serial++
	w := []byte("quxyq")
	for n := s.serial + 700; n > 0; n /= 26 {
		w = append(w, byte('a'+n%26))
	}
	return string(w)
}

// load is the machine's load average, so that a reader can judge the figures.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	f := strings.Fields(string(b))
	if err != nil || len(f) == 0 {
		return "load unknown"
	}
	return "load " + f[0]
}
