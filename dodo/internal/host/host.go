package host

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

// Most is how many projects may be open beside the active workspace.
const Most = 16

// Runtime is an open workspace with its operations.
type Runtime struct {
	ID, Epoch string
	Project   string // id of the project; empty when the root is not registered
	Tree      *workspace.Tree
	Ops       []contract.Op // in the catalogue's order, and others that are not listed
	Close     func() error
	Tidy      func(context.Context) error // removes what the workspace keeps no longer
	Jobs      Jobs                        // what was started here; nil when nothing can be
	Clock     func(context.Context) error // starts what is scheduled, until ctx is done

	turns  gate.Turns
	byName map[string]contract.Op
}

// Jobs are the commands that were started in a workspace.
type Jobs interface {
	// Stop ends those that run, so that calls which wait for them end, and starts no more.
	// When ctx is done they are ended the hard way.
	Stop(ctx context.Context) error
	// Busy reports that one runs: the workspace is not closed to make room for another.
	Busy() bool
	// Cancel ends one for the owner. One that runs somewhere else, or that nobody knows, is
	// a fault.
	Cancel(ctx context.Context, id string) (status string, err error)
}

// ready indexes a runtime's operations.
func (r *Runtime) ready() *Runtime {
	r.byName = make(map[string]contract.Op, len(r.Ops))
	for _, o := range r.Ops {
		r.byName[o.Name] = o
	}
	return r
}

func (r *Runtime) busy() bool { return r.Jobs != nil && r.Jobs.Busy() }

func (r *Runtime) workspace() gate.Workspace {
	return gate.Workspace{ID: r.ID, Epoch: r.Epoch, Turns: &r.turns, Lookup: func(name string) (contract.Op, bool) {
		o, ok := r.byName[name]
		return o, ok
	}}
}

// Config is what a host needs.
type Config struct {
	Authority gate.Authority
	Store     *state.Store
	// Open opens the workspace of a project.
	Open func(ctx context.Context, p state.Project) (*Runtime, error)
	Now  func() time.Time // nil means time.Now
}

// Host has the open workspaces of a process.
type Host struct {
	Config
	active *Runtime

	mu      sync.Mutex // guards what follows
	closed  bool       // End was called
	stopped bool       // no more leases
	others  map[place]*other
	calls   sync.WaitGroup // leases of any workspace
	closing []error
}

// place is a project where it is registered now. One that was registered anew elsewhere is
// opened there: what holds for the old workspace does not travel.
type place struct{ project, workspace string }

// other is a project that is open, or being opened.
type other struct {
	opened  chan struct{} // closed when it is open or could not be opened; then what follows is set
	runtime *Runtime
	err     error
	leases  int
	used    time.Time
}

// New returns a host with an active workspace, which it closes in the end. Nil: the owner has
// chosen none yet, and only registered projects that a call names are served.
func New(active *Runtime, c Config) *Host {
	if c.Now == nil {
		c.Now = time.Now
	}
	if active != nil {
		active.ready()
	}
	return &Host{Config: c, active: active, others: map[place]*other{}}
}

// Active is the active workspace; nil when none was chosen.
func (h *Host) Active() *Runtime { return h.active }

var _ gate.Workspaces = (*Host)(nil)

// Lease gives the workspace of a project, or the active one when project is empty. The
// faults are FORBIDDEN (for the owner NOT_FOUND) for a project that is not registered,
// WORKSPACE_ACCESS_REQUIRED, PATH_DENIED for one that is not ready, RESOURCE_LIMIT when
// too many are open and in use, and CONFLICT when the process is ending.
func (h *Host) Lease(ctx context.Context, p contract.Principal, project string) (gate.Workspace, func(), error) {
	r, release, err := h.lease(ctx, p, project)
	if err != nil {
		return gate.Workspace{}, nil, err
	}
	return r.workspace(), release, nil
}

func (h *Host) lease(ctx context.Context, p contract.Principal, project string) (*Runtime, func(), error) {
	if project == "" || h.active != nil && project == h.active.Project {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.closed || h.stopped {
			return nil, nil, ending()
		}
		if h.active == nil {
			return nil, nil, fault.New(contract.WorkspaceAccessRequired, "the owner has not chosen a workspace yet").
				WithHint("the owner chooses one on this machine: dodo start --root DIRECTORY")
		}
		h.calls.Add(1)
		return h.active, sync.OnceFunc(h.calls.Done), nil
	}
	record, err := h.admit(ctx, p, project)
	if err != nil {
		return nil, nil, err
	}
	if h.active != nil && record.Workspace == h.active.ID {
		return h.lease(ctx, p, "")
	}
	at := place{record.ID, record.Workspace}
	o, mine, err := h.take(at)
	if err != nil {
		return nil, nil, err
	}
	if mine {
		r, err := h.open(context.WithoutCancel(ctx), record)
		h.mu.Lock()
		if h.stopped && err == nil { // Stop did not see it
			r, err = nil, errors.Join(ending(), r.Close())
		}
		o.runtime, o.err = r, err
		h.mu.Unlock()
		close(o.opened)
	}
	release := sync.OnceFunc(func() { h.give(at, o) })
	select {
	case <-o.opened:
	case <-ctx.Done():
		release()
		return nil, nil, fault.Wrap(contract.Conflict, ctx.Err(), "the call was cancelled while the project was being opened").Retry()
	}
	if o.err != nil {
		release()
		return nil, nil, o.err
	}
	return o.runtime, release, nil
}

// open opens a project, and nothing but what is registered: between the look at it and the
// opening its path may have got a link or another directory. A panic fails the opening alone.
func (h *Host) open(ctx context.Context, p state.Project) (r *Runtime, err error) {
	defer func() {
		if v := recover(); v != nil {
			r, err = nil, fmt.Errorf("panic while a project was opened: %v\n%s", v, debug.Stack())
		}
	}()
	if r, err = h.Open(ctx, p); err != nil {
		return nil, err
	}
	if r.ID != p.Workspace || r.Tree.Identity() != (workspace.Identity{Dev: p.Dev, Ino: p.Ino}) {
		return nil, fault.Wrap(contract.PathDenied, r.Close(), "the project's directory was replaced while it was opened").
			WithHint("the owner sees it with: dodo project info %s", p.ID)
	}
	return r.ready(), nil
}

func ending() error {
	return fault.New(contract.Conflict, "dodo is ending").WithHint("connect again").Retry()
}

// admit holds a caller against a project.
func (h *Host) admit(ctx context.Context, p contract.Principal, project string) (state.Project, error) {
	hint := "project_overview lists the projects you may use"
	record, err := h.Store.Project(ctx, project)
	if errors.Is(err, contract.NotFound) || err == nil && record.Removed != nil {
		if p.Owner {
			return record, fault.New(contract.NotFound, "no project is registered with that id").WithHint("%s", hint)
		}
		return record, fault.New(contract.Forbidden, "that project is not one this client may use").WithHint("%s", hint)
	}
	if err != nil {
		return record, err
	}
	s, err := h.Authority.Standing(ctx, p, record.Workspace)
	if err != nil {
		return record, err
	}
	if len(s.Scopes) == 0 {
		return record, fault.New(contract.WorkspaceAccessRequired, "the owner has not granted this client access to that project").WithHint("%s", hint)
	}
	if r := record.Readiness(); r != state.Ready {
		return record, fault.New(contract.PathDenied, "the project's directory is %s", r).
			WithHint("the owner sees it with: dodo project info %s", record.ID).With("availability", string(r))
	}
	return record, nil
}

// take leases the entry of a project; mine says that the caller opens it.
func (h *Host) take(at place) (o *other, mine bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.stopped {
		return nil, false, ending()
	}
	o = h.others[at]
	if o == nil {
		if err := h.room(); err != nil {
			return nil, false, err
		}
		o, mine = &other{opened: make(chan struct{})}, true
		h.others[at] = o
	}
	o.leases++
	h.calls.Add(1)
	return o, mine, nil
}

// room closes the project that was used least lately and is not in use, when there are as
// many as there may be.
func (h *Host) room() error {
	if len(h.others) < Most {
		return nil
	}
	var oldest place
	for at, o := range h.others {
		if o.leases == 0 && !o.runtime.busy() && (oldest == place{} || o.used.Before(h.others[oldest].used)) {
			oldest = at
		}
	}
	if oldest == (place{}) {
		return fault.New(contract.ResourceLimit, "%d projects are open and in use", Most).WithHint("call again when a call has ended").Retry()
	}
	h.closing = append(h.closing, h.others[oldest].runtime.Close())
	delete(h.others, oldest)
	return nil
}

// give ends a lease. A project that could not be opened is forgotten, so that the next call
// tries again.
func (h *Host) give(at place, o *other) {
	h.mu.Lock()
	o.leases--
	o.used = h.Now()
	if o.err != nil && h.others[at] == o {
		delete(h.others, at)
	}
	h.mu.Unlock()
	h.calls.Done()
}

// End refuses new calls, waits until those that run have ended, and closes every workspace.
// When ctx ends first it closes nothing: a call that goes on does so in an open workspace,
// until the process is gone. Only the first End does anything.
func (h *Host) End(ctx context.Context) error {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	h.mu.Unlock()
	if again {
		return nil
	}
	done := make(chan struct{})
	go func() { h.calls.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := h.closing
	if h.active != nil {
		errs = append(errs, h.active.Close())
	}
	for _, o := range h.others {
		if o.runtime != nil {
			errs = append(errs, o.runtime.Close())
		}
	}
	h.others = nil
	return errors.Join(errs...)
}

var _ workspace.Projects = (*Host)(nil)

// Stop ends what was started in all workspaces and still runs. No call gets a workspace any
// more.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	list := h.able()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, r := range list {
		all.Go(func() { errs[i] = r.Jobs.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Cancel ends a job for the owner, in whichever workspace it runs, and gives the id of that.
// JOB_NOT_FOUND says that it runs in none of this process.
func (h *Host) Cancel(ctx context.Context, id string) (workspace, status string, err error) {
	err = fault.New(contract.JobNotFound, "no job of that id runs here")
	for _, r := range h.able() {
		status, e := r.Jobs.Cancel(ctx, id)
		if e == nil {
			return r.ID, status, nil
		}
		if !errors.Is(e, contract.JobNotFound) {
			workspace, err = r.ID, e
		}
	}
	return workspace, "", err
}

// able are the open workspaces in which something can be started.
func (h *Host) able() (list []*Runtime) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.active != nil && h.active.Jobs != nil {
		list = append(list, h.active)
	}
	for _, o := range h.others {
		if o.runtime != nil && o.runtime.Jobs != nil {
			list = append(list, o.runtime)
		}
	}
	return list
}

// View gives another project for reading, for as long as the call that ctx belongs to. Ids
// that are not registered and projects without access look the same to all but the owner.
func (h *Host) View(ctx context.Context, p contract.Principal, id string) (workspace.View, error) {
	record, err := h.Store.Project(ctx, id)
	if err != nil && !errors.Is(err, contract.NotFound) {
		return workspace.View{}, err
	}
	r, release, err := h.lease(ctx, p, id)
	switch code := fault.From(err); {
	case err == nil:
	case code.Code == contract.NotFound && p.Owner: // of whom nothing is hidden
		return workspace.View{}, err
	case code.Code == contract.WorkspaceAccessRequired, code.Code == contract.NotFound, code.Code == contract.Forbidden:
		return workspace.View{}, fault.New(contract.Forbidden, "that project is not one this client may read").
			WithHint("project_overview lists the projects you may use")
	case code.Code == contract.PathDenied:
		return workspace.View{}, fault.Wrap(contract.NotFound, err, "the project cannot be reached now: %s", code.Error()).WithHint("%s", code.Hint).Retry()
	default:
		return workspace.View{}, err
	}
	context.AfterFunc(ctx, release)
	s, err := h.Authority.Standing(ctx, p, r.ID)
	if err != nil {
		return workspace.View{}, err
	}
	if !s.Scopes.Has(contract.ScopeRead) {
		return workspace.View{}, fault.New(contract.Forbidden, "that project is not one this client may read").
			WithHint("project_overview lists the projects you may use")
	}
	source, err := contract.Digest([]any{record.ID, r.ID, r.Epoch, record.Dev, record.Ino})
	if err != nil {
		return workspace.View{}, err
	}
	return workspace.View{Tree: r.Tree, Project: workspace.Project{
		SourceHash: source,
		ProjectID:  record.ID, DisplayName: record.Name, WorkspaceID: r.ID, WorkspaceEpoch: r.Epoch,
		Availability: string(state.Ready), Available: true, StatusText: "ready", ReadOnly: true,
	}}, nil
}
