package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/fault"
)

// A live job is one that runs here, or is being started.
type live struct {
	s        *Service
	out, err *spool
	readers  []*os.File    // what the spools read
	refused  chan Refused  // what the proxy did not let it reach, when that has ended
	cancel   func()        // ends the proxy
	giveUp   func()        // ends the start
	started  chan struct{} // closed when it was started, or cannot be
	done     chan struct{} // closed when it is over and that is written down

	mu     sync.Mutex       // guards what follows
	proc   *sandbox.Process // nil while it is being started
	row    record
	reason Status        // why it was ended; empty when it ends by itself
	grace  time.Duration // what it has to end when it was to be ended before it was started
	kill   *time.Timer
	killAt time.Time // when kill is due
	stdin  *os.File  // nil when it is closed or was never open

	feeding sync.Mutex // held while input is written; guards what follows
	partial bool       // what was written last to a terminal is no whole line
}

// now is the job as it stands.
func (j *live) now() *record {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.row
	if !r.over() {
		r.OutBytes, r.ErrBytes = j.out.size.Load(), j.err.size.Load()
	}
	return &r
}

// secretNote says what a command does not see. Git in it sees no less, and would commit it.
func secretNote(n int) string {
	if n == 1 {
		return "A secret path of the workspace looks empty to the command; git in it takes it for changed, so do not have it added there."
	}
	return fmt.Sprintf("%d secret paths of the workspace look empty to the command; git in it takes them for changed, so do not have them added there.", n)
}

// roomFor is the fault of a service that cannot start so many jobs now. The lock is held.
func (s *Service) roomFor(n int) error {
	if s.closing {
		return stopping()
	}
	most := s.Limits.JobsConcurrentMax
	if n > most {
		return fault.New(contract.ResourceLimit, "%d commands were given, and %d can run at once", n, most).
			WithHint("give fewer at once, or let the owner raise limits.jobsConcurrentMax")
	}
	if s.slots+n > most {
		return fault.New(contract.ResourceLimit, "%d jobs run, and %d can run at once", s.slots, most).
			WithHint("wait with job_wait for one to end, or end one with job_cancel; list_jobs shows them").Retry()
	}
	return nil
}

// reserve takes slots for jobs; each is given back by release.
func (s *Service) reserve(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.roomFor(n)
	if err == nil {
		s.slots += n
	}
	return err
}

func (s *Service) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots--; s.slots == 0 && s.closing {
		close(s.idle)
	}
}

// start starts an order in a slot that was reserved. The job goes on when ctx ends; who ends
// the job ends its start.
func (s *Service) start(ctx context.Context, o *order) (*live, error) {
	ctx = context.WithoutCancel(ctx) // half a start helps nobody
	id, most := contract.NewID(contract.PrefixJob, 0), int64(s.Limits.JobLogBytesPerJob)
	j := &live{s: s, started: make(chan struct{}), done: make(chan struct{}), cancel: func() {}, row: record{
		ID: id, Workspace: s.WorkspaceID, Epoch: s.Epoch, Process: s.process, Principal: o.principal,
		Tool: o.tool, Key: o.key, Kind: o.kind, Cwd: o.cwd, Recipe: o.task.ID, Status: Running, Notes: []string{}, Created: s.Now(), Timeout: o.timeout,
	}}
	j.row.Program, j.row.Args, j.row.ArgsCut = o.echo()
	j.out, j.err = s.spools.open(id, Stdout, most), s.spools.open(id, Stderr, most)
	row := j.row
	starts, giveUp := context.WithCancel(ctx)
	j.giveUp = giveUp
	defer giveUp()
	defer close(j.started)
	s.mu.Lock()
	s.live[id] = j // before the row: who finds that one can end it
	closing := s.closing
	s.mu.Unlock()
	if closing {
		j.end(Canceled, 0)
	}
	if err := s.insert(ctx, &row); err != nil {
		s.forget(j)
		return nil, err
	}
	if err := j.spawn(starts, o); err != nil {
		return j.unstarted(ctx, startFault(err))
	}
	s.watchers.Go(j.watch)
	return j, nil
}

// unstarted writes down that a job was not started. When it was to be ended it was not to be
// started either.
func (j *live) unstarted(ctx context.Context, cause error) (*live, error) {
	s := j.s
	s.spools.removeScript(j.row.ID)
	j.mu.Lock()
	j.row.Ended = s.Now()
	if j.row.Status = j.reason; j.reason == "" {
		j.row.Status = FailedToStart
		j.row.Notes = append(j.row.Notes, "It was not started: "+fault.From(cause).Msg+".")
	} else {
		j.row.Notes = append(j.row.Notes, "It was ended before its command was run.")
		cause = nil
	}
	r := j.row
	j.mu.Unlock()
	s.keep(ctx, &r)
	s.forget(j)
	if cause != nil {
		return nil, cause
	}
	return j, nil
}

// forget takes a job off the list of those that run, and gives its slot back.
func (s *Service) forget(j *live) {
	s.mu.Lock()
	delete(s.live, j.row.ID)
	s.mu.Unlock()
	s.release()
	close(j.done)
}

// spawn makes the process and what reads it.
func (j *live) spawn(ctx context.Context, o *order) (err error) {
	s, id := j.s, j.row.ID
	spec := sandbox.Spec{Args: o.args, Dir: o.dir, Env: s.environment(o.terminal), Mode: o.mode, Network: o.network}
	if o.source != "" {
		spec.Args = []string{shell, "-c", o.source}
		if len(o.source) > inlineBytes {
			file, err := s.spools.script(id, o.source)
			if err != nil {
				return scriptFault(err)
			}
			spec.Args, spec.Script = []string{shell, file}, file
		}
	}
	var ours, theirs []*os.File
	pipe := func(read bool) *os.File {
		if err != nil {
			return nil
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return nil
		}
		if !read {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
		return w
	}
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if err != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	if o.terminal {
		spec.Terminal = &sandbox.Size{Columns: 120, Rows: 40}
	} else {
		spec.Stdout, spec.Stderr = pipe(true), pipe(true)
		if o.stdin {
			spec.Stdin = pipe(false)
		}
		if err != nil {
			return err
		}
	}
	proc, err := s.Place.Start(ctx, spec)
	if err != nil {
		return err
	}
	if o.terminal {
		j.readers = []*os.File{proc.Terminal}
		close(j.err.done)
		go j.out.take(proc.Terminal)
	} else {
		j.readers = ours[:2]
		go j.out.take(ours[0])
		go j.err.take(ours[1])
	}
	j.connect(proc.Proxy)
	j.mu.Lock()
	j.proc = proc
	if o.terminal {
		j.stdin = proc.Terminal
	} else if o.stdin {
		j.stdin = ours[2]
	}
	j.row.Started, j.row.Isolation = s.Now(), proc.Isolation
	j.row.Notes = append(append(j.row.Notes, o.warnings...), proc.Notes...)
	if n := proc.Hidden; n > 0 {
		j.row.Notes = append(j.row.Notes, secretNote(n))
	}
	why, grace := j.reason, j.grace
	j.mu.Unlock()
	if why != "" {
		j.end(why, grace)
	}
	return nil
}

// scriptFault says why there is no file for a long command.
func scriptFault(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(contract.ResourceLimit, err, "the disk of the installation directory is full: there is no room for the command").
			WithHint("the owner should make room; then call again").Retry()
	}
	return fmt.Errorf("write the script of a job: %w", err)
}

// connect serves the proxy as long as the job runs.
func (j *live) connect(l net.Listener) {
	if l == nil {
		return
	}
	if j.s.Connect == nil {
		_ = l.Close()
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	j.refused = make(chan Refused, 1)
	j.cancel = func() { cancel(); _ = l.Close() }
	go func() {
		refused, err := j.s.Connect.Serve(ctx, l)
		if err != nil && ctx.Err() == nil {
			j.s.Log.Error("the proxy of a job ended", "job", j.row.ID, "cause", err)
		}
		j.refused <- refused
	}()
}

// end asks the job to end, and kills it after a while. The first reason counts, with its notes,
// and the earliest end of a grace: who asks again puts off nothing. One that is being started
// is ended as soon as it is there. When the process has ended, it says how.
func (j *live) end(why Status, grace time.Duration, notes ...string) (ended Status) {
	j.mu.Lock()
	if j.row.over() {
		defer j.mu.Unlock()
		return j.row.Status
	}
	if j.proc != nil {
		select {
		case <-j.proc.Ended():
			defer j.mu.Unlock()
			return cmp.Or(j.reason, Exited)
		default:
		}
	}
	if j.reason == "" {
		j.reason, j.grace = why, grace
		j.row.Notes = append(j.row.Notes, notes...)
	}
	if j.proc == nil {
		j.grace = min(j.grace, grace)
		j.mu.Unlock()
		j.giveUp()
		return ""
	}
	if at := time.Now().Add(grace); j.kill == nil || at.Before(j.killAt) && j.kill.Stop() {
		j.kill, j.killAt = time.AfterFunc(grace, j.proc.Kill), at
	}
	j.mu.Unlock()
	j.proc.Terminate()
	return ""
}

// watch is there until the job is over and that is written down.
func (j *live) watch() {
	s := j.s
	limit := time.AfterFunc(j.row.Timeout, func() { j.end(TimedOut, killAfter) })
	// Others, and who comes after a crash, should know how it runs. Nobody waits for this.
	if err := s.update(context.Background(), j.now()); err != nil {
		s.Log.Error("how a job runs could not be written down", "job", j.row.ID, "cause", err)
	}
	<-j.proc.Ended()
	limit.Stop()
	exit := j.proc.Wait()
	held := j.drained()
	j.closeInput()
	j.cancel()
	var refused Refused
	if j.refused != nil {
		refused = <-j.refused
	}
	j.mu.Lock()
	if j.kill != nil {
		j.kill.Stop()
	}
	r := j.row
	r.Status, r.Ended = cmp.Or(j.reason, Exited), s.Now()
	if r.Signal = exit.Signal; r.Signal == "" {
		r.ExitCode = &exit.Code
	}
	r.Notes = append(r.Notes, exit.Notes...)
	if held {
		r.Notes = append(r.Notes, "Something that the command started holds its output open and may still run; what it writes is not kept.")
	}
	if n := j.out.lost.Load() + j.err.lost.Load(); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d bytes of output could not be stored: the disk of the installation directory is full or cannot be written.", n))
	}
	if len(refused.Hosts) > 0 {
		r.Notes = append(r.Notes, refusal(refused))
	}
	r.OutBytes, r.ErrBytes, r.Kept = j.out.size.Load(), j.err.size.Load(), j.out.kept+j.err.kept
	j.row = r
	j.mu.Unlock()
	s.spools.removeScript(r.ID)
	s.keep(context.Background(), &r)
	s.forget(j)
	s.trim(context.Background())
}

// refusal names hosts, bounded, and what can be done.
func refusal(r Refused) string {
	const most, long = 10, 100
	var list []string
	hosts := r.Hosts
	for _, h := range hosts[:min(len(hosts), most)] {
		list = append(list, text.Visible(clip(strings.ReplaceAll(h, "\n", " "), long)))
	}
	more := ""
	if n := len(hosts) - len(list); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return strings.TrimSpace("The command was not let reach: " + strings.Join(list, ", ") + more + ". " + r.Remedy)
}

// drained waits for the end of the output. It does not wait for long for what outlives the
// job, and says whether there is such a thing.
func (j *live) drained() (held bool) {
	t := time.NewTimer(drain)
	defer t.Stop()
	for _, p := range []*spool{j.out, j.err} {
		select {
		case <-p.done:
		case <-t.C:
			held = true
		}
		if held {
			break
		}
	}
	for _, f := range j.readers {
		if held {
			// A reader that waits comes back at the deadline; closing alone would not do that
			// for every kind of file.
			_ = f.SetReadDeadline(time.Now())
		}
		_ = f.Close()
	}
	<-j.out.done
	<-j.err.done
	return held
}

// keep writes a job down that is over. When that fails, this process remembers it, and tries
// again later; for others the job is interrupted when this process is gone.
func (s *Service) keep(ctx context.Context, r *record) {
	if err := s.update(ctx, r); err != nil {
		s.Log.Error("the end of a job could not be written down", "job", r.ID, "cause", err)
		s.mu.Lock()
		s.unsaved[r.ID] = r
		s.mu.Unlock()
	}
}

// closeInput ends the input of the job; that of a terminal is the terminal itself.
func (j *live) closeInput() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stdin != nil && j.proc.Terminal == nil {
		_ = j.stdin.Close()
	}
	j.stdin = nil
}

// Stop starts no more jobs and ends those that run: asked first, killed a second later. It
// returns when they are gone, after 3 seconds at the latest.
func (s *Service) Stop(ctx context.Context) error {
	s.mu.Lock()
	if !s.closing {
		s.closing = true
		if s.slots == 0 {
			close(s.idle)
		}
	}
	var all []*live
	for _, j := range s.live {
		all = append(all, j)
	}
	s.mu.Unlock()
	for _, j := range all {
		j.end(Canceled, stopAfter, "It was ended because dodo was shut down.")
	}
	ctx, cancel := context.WithTimeout(ctx, stopWait)
	defer cancel()
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
	}
	// What is left must not outlive this process.
	for _, j := range all {
		j.end(Canceled, 0)
	}
	select {
	case <-s.idle:
		return nil
	case <-time.After(stopLast):
		return errors.New("jobs did not end in time")
	}
}
