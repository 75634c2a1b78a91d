package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/keyshape"
)

type runCommandsIn struct {
	Commands  []oneIn `json:"commands" minItems:"1" maxItems:"8"`
	WaitMs    int     `json:"waitMs" default:"45000" min:"1000" max:"300000" doc:"How long to wait for all of them. Those that take longer go on."`
	TimeoutMs int     `json:"timeoutMs,omitempty" min:"1000" max:"1800000" doc:"When each is ended; 10 minutes if left out."`
	Sandbox   *bool   `json:"sandbox,omitempty" doc:"As for run_command."`
	Network   bool    `json:"network" default:"true" doc:"False takes the network away."`
}

type oneIn struct {
	Name    string `json:"name,omitempty" maxLength:"64" doc:"What to call it in the answer; cmd1, cmd2 and so on if left out."`
	Command string `json:"command" minLength:"1" maxLength:"8388608" doc:"Text for /bin/sh."`
	Cwd     string `json:"cwd" default:"." maxLength:"1024" doc:"Directory to start in, relative to the workspace's root."`
}

type runCommandsOut struct {
	Results      []oneOut `json:"results" doc:"In the order of the commands."`
	AllExited    bool     `json:"allExited"`
	AllSucceeded bool     `json:"allSucceeded" doc:"All ended by themselves with exit code 0."`
	DurationMs   int64    `json:"durationMs"`
}

type oneOut struct {
	Name             string `json:"name"`
	Command          string `json:"command" doc:"The beginning of it."`
	CommandTruncated bool   `json:"commandTruncated"`
	stateOut
	Exited bool     `json:"exited"`
	Error  string   `json:"error,omitempty" doc:"Why it was not started."`
	Notes  []string `json:"notes,omitempty"`
}

func (s *Service) runCommands() contract.Op {
	d := runs("run_commands", "Run shell commands at once",
		"Runs up to 8 commands at the same time and waits for all: up to 45 seconds unless waitMs says otherwise. None is started unless all of them can be; cancelling the call while it waits ends them. "+
			"For commands that do not depend on each other; what has an order belongs into one run_command.")
	return contract.Do(d, func(ctx context.Context, c contract.Call, in runCommandsIn) (contract.Act[runCommandsOut], error) {
		var none contract.Act[runCommandsOut]
		b := &batch{s: s, in: in}
		var shown []preview
		for i, one := range in.Commands {
			o, err := s.draft(c, d.Name, "", asked{cwd: one.Cwd, sandbox: in.Sandbox, network: in.Network, timeoutMs: in.TimeoutMs})
			if err == nil {
				err = o.text(one.Command, s.Limits)
			}
			if err != nil {
				return none, fmt.Errorf("commands[%d]: %w", i, err)
			}
			b.orders = append(b.orders, o)
			shown = append(shown, o.preview())
		}
		if err := s.room(len(b.orders)); err != nil {
			return none, err
		}
		return contract.Act[runCommandsOut]{
			Summary: fmt.Sprintf("run %d shell commands at once", len(b.orders)) + b.orders[0].where(), Preview: shown,
			Run: b.run,
			Follow: func(ctx context.Context, _ contract.Answer[runCommandsOut]) (contract.Answer[runCommandsOut], error) {
				return b.follow(ctx, c)
			},
		}, nil
	})
}

// A batch are commands of one call.
type batch struct {
	s       *Service
	in      runCommandsIn
	orders  []*order
	begun   time.Time
	records []*record // of those that were started; nil for the others
	errs    []error
}

// run starts them. What cannot be started is told in its place; when that is so of all, the
// call fails.
func (b *batch) run(ctx context.Context) (contract.Answer[runCommandsOut], error) {
	var none contract.Answer[runCommandsOut]
	b.begun = b.s.Now()
	n := len(b.orders)
	if err := b.s.reserve(n); err != nil {
		return none, err
	}
	b.records, b.errs = make([]*record, n), make([]error, n)
	started := 0
	for i, o := range b.orders {
		j, err := b.s.start(ctx, o)
		if b.errs[i] = err; err == nil {
			b.records[i] = j.now()
			started++
		}
	}
	if started == 0 {
		return none, b.errs[0]
	}
	a, err := b.answer()
	if err != nil {
		return none, b.s.unseen(err, b.ids()...)
	}
	return a, nil
}

// follow waits for all of them at once.
func (b *batch) follow(ctx context.Context, c contract.Call) (contract.Answer[runCommandsOut], error) {
	var waits, reports sync.WaitGroup
	most := time.Duration(b.in.WaitMs) * time.Millisecond
	all, over := b.ids(), make(chan struct{})
	reports.Go(func() { b.report(c, all, most, over) })
	fails := make([]error, len(b.records))
	each := c
	each.Progress = nil // one that speaks for all is enough
	for i, r := range b.records {
		if r == nil {
			continue
		}
		waits.Go(func() {
			now, err := b.s.see(ctx, each, r.ID, most)
			if fails[i] = err; err == nil {
				b.records[i] = now
			}
		})
	}
	waits.Wait()
	close(over)
	reports.Wait()
	a, err := contract.Answer[runCommandsOut]{}, errors.Join(fails...)
	if err == nil {
		a, err = b.answer()
	}
	if err != nil {
		return a, b.s.unseen(err, all...)
	}
	return a, nil
}

// ids are those of the jobs that were started.
func (b *batch) ids() (all []string) {
	for _, r := range b.records {
		if r != nil {
			all = append(all, r.ID)
		}
	}
	return all
}

// report tells the caller how far they are, until all are over.
func (b *batch) report(c contract.Call, ids []string, most time.Duration, over <-chan struct{}) {
	begun := time.Now()
	tick := time.NewTicker(b.s.reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		left, bytes := 0, int64(0)
		for _, id := range ids {
			if j := b.s.running(id); j != nil {
				r := j.now()
				left, bytes = left+1, bytes+r.OutBytes+r.ErrBytes
			}
		}
		waited := time.Since(begun)
		c.Report(waited.Seconds(), most.Seconds(), fmt.Sprintf("%d of %d commands run; they wrote %d bytes", left, len(ids), bytes))
	}
}

// answer shows all of them; each has its part of the room.
func (b *batch) answer() (a contract.Answer[runCommandsOut], err error) {
	const leastRoom, echo = 300, 1024
	n := len(b.orders)
	a.Data = runCommandsOut{AllExited: true, AllSucceeded: true, DurationMs: b.s.Now().Sub(b.begun).Milliseconds()}
	for i, in := range b.in.Commands {
		one := oneOut{Name: in.Name}
		if one.Name == "" {
			one.Name = fmt.Sprintf("cmd%d", i+1)
		}
		one.Command = clip(in.Command, min(echo, b.s.usual()/4/n))
		one.CommandTruncated = len(one.Command) < len(in.Command)
		one.Command, _ = keyshape.Mask(in.Command[:min(len(in.Command), len(one.Command)+around)], 0, len(one.Command))
		r := b.records[i]
		if r == nil {
			f := fault.From(b.errs[i])
			one.Error, one.Status = string(f.Code)+": "+f.Msg, FailedToStart
		} else {
			room := max(leastRoom, (b.s.usual()-n*600)/n-cost(one.Command))
			if one.stateOut, err = b.s.state(r, room); err != nil {
				return a, err
			}
			one.Notes = r.Notes
			if a.Ref == "" {
				a.Ref = r.ID
			}
		}
		one.Exited = one.Status != Running
		a.Data.AllExited = a.Data.AllExited && one.Exited
		a.Data.AllSucceeded = a.Data.AllSucceeded && one.Status == Exited && one.ExitCode != nil && *one.ExitCode == 0
		a.Truncated = a.Truncated || one.StdoutTruncated || one.StderrTruncated
		a.Data.Results = append(a.Data.Results, one)
	}
	return a, nil
}
