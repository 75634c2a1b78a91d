package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"localmcp/mooncite/internal/corpus"
	"localmcp/mooncite/internal/evidence"
)

// growLimit is how long a new text may stay unfound before the measure gives up.
const growLimit = 30 * time.Second

// growth appends records to the largest file of each origin that grows by lines and
// measures the time until a recall of their word returns them.
func (b *bench) growth(ctx context.Context, s *subject) error {
	srv, err := b.warm(ctx, s)
	if err != nil {
		return err
	}
	defer srv.close()
	goal := upTo100(s.mb, goalAppend)
	for _, o := range []evidence.Origin{evidence.Claude, evidence.Codex, evidence.Pi, evidence.OMP} {
		path, err := corpus.Largest(s.home(), o)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		var all times
		for range appendRounds {
			word := s.word()
			if err := corpus.Append(path, o, word, time.Now()); err != nil {
				return err
			}
			took, err := until(ctx, srv, time.Now(), word, growLimit)
			if err != nil {
				return fmt.Errorf("%s: %w", o, err)
			}
			all = append(all, took)
		}
		b.row(s, fmt.Sprintf("record appended to %s (%.1f MB), median", o, float64(info.Size())/1e6),
			fmt.Sprintf("%s, worst %s", show(all.median()), show(all.worst())), goalTime(goal), judge(all.median(), goal))
	}
	return nil
}

// warm opens a session and asks once, so that what a server does only once is done.
func (b *bench) warm(ctx context.Context, s *subject) (*server, error) {
	srv, _, err := b.open(ctx, s)
	if err != nil {
		return nil, err
	}
	var f found
	if _, err := srv.call(ctx, "mooncite_recall", map[string]any{"query": "build error"}, &f); err != nil {
		return nil, errors.Join(err, srv.close())
	}
	return srv, nil
}

// export adds conversations to a ChatGPT export of its own.
func (b *bench) export(ctx context.Context, dir string, mb int) error {
	s, err := b.subject(ctx, dir, fmt.Sprintf("%d MB export", mb), mb, evidence.ChatGPT)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	err = b.exportGrowth(ctx, s)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		b.row(s, "conversation added", lastLines(err.Error()), goalTime(goalExport), failed)
	}
	return nil
}

func (b *bench) exportGrowth(ctx context.Context, s *subject) error {
	if _, err := b.rebuild(ctx, s); err != nil {
		return err
	}
	srv, err := b.warm(ctx, s)
	if err != nil {
		return err
	}
	defer srv.close()
	var all times
	for range exportRounds {
		word := s.word()
		if err := corpus.AddConversation(s.home(), word, time.Now()); err != nil {
			return err
		}
		took, err := until(ctx, srv, time.Now(), word, growLimit)
		if err != nil {
			return err
		}
		all = append(all, took)
	}
	b.row(s, "conversation added, median", fmt.Sprintf("%s, worst %s", show(all.median()), show(all.worst())), goalTime(goalExport), judge(all.median(), goalExport))
	return nil
}

// pings lets a fresh server make its first index and pings it all the while.
func (b *bench) pings(ctx context.Context, s *subject) error {
	if err := s.forget(); err != nil {
		return err
	}
	srv, _, err := b.open(ctx, s)
	if err != nil {
		return err
	}
	defer srv.close()
	begin := time.Now()
	_, recall := srv.send("tools/call", toolCall("mooncite_recall", map[string]any{"query": "build error"}))
	answers := make(chan sentPing, 1<<16)
	slowest := make(chan pinged)
	go func() { slowest <- collect(ctx, answers) }()

	ready, err := b.pingUntilReady(ctx, srv, answers, begin)
	close(answers)
	p := <-slowest
	if err = errors.Join(err, p.err); err != nil {
		return err
	}
	first, err := wait(ctx, recall)
	if err != nil {
		return fmt.Errorf("the recall that began the index: %w", err)
	}
	b.note("%s: the first recall was answered after %s", s.name, show(first.at.Sub(begin)))
	goal := upTo100(s.mb, goalPing)
	b.row(s, fmt.Sprintf("slowest of %d pings during the first index", len(p.took)), fmt.Sprintf("%s, p95 %s", show(p.took.worst()), show(p.took.at(.95))), goalTime(goal), judge(p.took.worst(), goal))
	b.row(s, "first index in the background", fmt.Sprintf("ready after %s", show(ready)), "", info)
	return nil
}

// sentPing is a ping on its way.
type sentPing struct {
	at     time.Time
	answer <-chan reply
}

type pinged struct {
	took times
	err  error
}

func collect(ctx context.Context, answers <-chan sentPing) (p pinged) {
	for a := range answers {
		r, err := wait(ctx, a.answer)
		if err != nil {
			p.err = errors.Join(p.err, fmt.Errorf("ping: %w", err))
			break
		}
		p.took = append(p.took, r.at.Sub(a.at))
	}
	for range answers { // the sender must never be held up
	}
	return p
}

// pingUntilReady pings at a fixed pace and asks for the status now and then.
func (b *bench) pingUntilReady(ctx context.Context, srv *server, answers chan<- sentPing, begin time.Time) (time.Duration, error) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	var status <-chan reply
	asked := time.Time{}
	for {
		at, c := srv.send("ping", nil)
		answers <- sentPing{at, c}
		if status == nil && time.Since(asked) > 20*pingEvery {
			asked, status = srv.send("tools/call", toolCall("mooncite_status", map[string]any{}))
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-srv.ended:
			return 0, errors.New("the server ended during its first index: " + lastLines(srv.errs.String()))
		case a := <-status:
			status = nil
			var st struct {
				Outcome string `json:"outcome"`
			}
			if err := errors.Join(a.err, structured(a.result, &st)); err != nil {
				return 0, fmt.Errorf("mooncite_status: %w", err)
			}
			if st.Outcome == "ready" {
				return a.at.Sub(begin), nil
			}
			if time.Since(begin) > indexPatience {
				return 0, fmt.Errorf("status still says %q after %s", st.Outcome, indexPatience)
			}
		case <-tick.C:
		}
	}
}
