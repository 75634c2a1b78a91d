package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	costRuns  = 7    // of each program, one after the other in turn
	costShare = 0.05 // more CPU time than without confinement
	costCalls = 200  // recalls of one session
)

// A chore is what both programs do for [bench.cost].
type chore struct {
	name string
	run  func(ctx context.Context, bin string, s *subject) (usage, error)
}

// cost compares the program with one that was built without confinement.
func (b *bench) cost(ctx context.Context, s *subject) error {
	if b.plain == "" {
		return nil
	}
	for _, c := range []chore{
		{"rebuild", b.rebuildWith},
		{fmt.Sprintf("serve and %d recalls", costCalls), b.session},
		{"recall, on the command line", b.recallOnce},
	} {
		var with, without times
		for range costRuns {
			for bin, to := range map[string]*times{b.bin: &with, b.plain: &without} {
				u, err := c.run(ctx, bin, s)
				if err != nil {
					return err
				}
				*to = append(*to, u.cpu)
			}
		}
		more := float64(with.median())/float64(without.median()) - 1
		b.row(s, "confined "+c.name+", CPU", fmt.Sprintf("%+.1f %%: %s, without %s", 100*more, show(with.median()), show(without.median())),
			fmt.Sprintf("<= %.0f %%", 100*costShare), judge(more, costShare))
	}
	var with, without times
	for range starts {
		for bin, to := range map[string]*times{b.bin: &with, b.plain: &without} {
			srv, took, err := open(ctx, bin, s.place)
			if err != nil {
				return err
			}
			if err := srv.close(); err != nil {
				return err
			}
			*to = append(*to, took)
		}
	}
	b.row(s, "start to initialize, confined and not", fmt.Sprintf("%s, without %s", show(with.median()), show(without.median())), "", info)
	return nil
}

func (b *bench) rebuildWith(ctx context.Context, bin string, s *subject) (usage, error) {
	_, u, err := measured(ctx, s.place, bin, "rebuild", "--json")
	return u, err
}

func (b *bench) recallOnce(ctx context.Context, bin string, s *subject) (usage, error) {
	_, u, err := measured(ctx, s.place, bin, "recall", "--json", "--", s.queries[0].Query)
	return u, err
}

// session is a server's whole life; the CPU time is that of its processes together.
func (b *bench) session(ctx context.Context, bin string, s *subject) (usage, error) {
	srv, _, err := open(ctx, bin, s.place)
	if err != nil {
		return usage{}, err
	}
	for q := range slices.Values(s.queries[:min(costCalls, len(s.queries))]) {
		var f found
		if _, err := srv.call(ctx, "mooncite_recall", map[string]any{"query": q.Query}, &f); err != nil {
			return usage{}, errors.Join(err, srv.close())
		}
	}
	begin := time.Now()
	if err := srv.close(); err != nil {
		return usage{}, err
	}
	state := srv.cmd.ProcessState
	return usage{wall: time.Since(begin), cpu: state.UserTime() + state.SystemTime()}, nil
}
