package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/change"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/policy"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/search"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/host"
	"localmcp/dodo/internal/plane/git"
	"localmcp/dodo/internal/plane/notes"
	"localmcp/dodo/internal/plane/overview"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/dodo/internal/plane/web"
	"localmcp/internal/fault"
)

// installation is the opened installation directory.
type installation struct {
	dir    string
	home   string
	path   string        // where programs are looked for
	config config.Config // with what holds for this run alone
	saved  config.Config // as the owner saved it
	run    runMode
	store  *state.Store
	walls  *walls
}

// runMode is what the owner said on the command line for one run (contract 017). It changes
// nothing that is saved.
type runMode struct {
	trusted bool // clients are trusted, and may fetch pages of the web
	bypass  bool // that, and commands are not confined unless they ask for it
}

// over puts it over the settings.
func (m runMode) over(c config.Config) config.Config {
	if m.trusted || m.bypass {
		c.AllowWebFetch = true
	}
	if m.bypass {
		c.CommandSandbox = string(sandbox.Off)
	}
	return c
}

// install opens the installation directory, and makes it where there is none.
func (p *program) install(ctx context.Context) (*installation, error) {
	return p.installFor(ctx, runMode{})
}

// installFor is install for a run with a mode.
func (p *program) installFor(ctx context.Context, m runMode) (*installation, error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return nil, err
	}
	c, err := config.Ensure(ctx, dir)
	if err != nil {
		return nil, err
	}
	store, err := state.Open(ctx, dir, state.Options{Now: clockOf(dir)})
	if err != nil {
		return nil, err
	}
	in := &installation{dir: dir, home: p.env["HOME"], path: p.env["PATH"], config: m.over(c), saved: c, run: m, store: store}
	err = mirrorAccess(ctx, dir, store)
	if err == nil {
		in.walls, err = newWalls(in, p.environ())
	}
	if err != nil {
		in.close(nil)
		return nil, err
	}
	return in, nil
}

func (in *installation) close(log *slog.Logger) {
	if err := in.store.Close(); err != nil && log != nil {
		log.Error("the state could not be closed", "cause", err)
	}
}

func (in *installation) limits() contract.Limits { return in.config.Limits }

// opening says what to serve.
type opening struct {
	root    string // empty: none is chosen
	unsafe  bool   // the owner said so on the command line; never for another root
	remote  bool   // for clients that the owner let in, over HTTP; else for one on this machine
	surface surface.Kind
	log     *slog.Logger
}

// served is what doors show.
type served struct {
	*installation
	opening
	host *host.Host
	gate *gate.Gate
	stop context.CancelFunc
	idle chan struct{} // closed when the housekeeping has ended
}

// serve opens a workspace and builds the road to it.
func (in *installation) serve(ctx context.Context, o opening) (*served, error) {
	s := &served{installation: in, opening: o, idle: make(chan struct{})}
	var active *host.Runtime
	if o.root != "" {
		var err error
		if active, err = s.open(ctx, o.root, "", o.unsafe); err != nil {
			return nil, err
		}
	}
	rules := s.rules()
	s.host = host.New(active, host.Config{Authority: rules, Store: in.store, Open: func(ctx context.Context, p state.Project) (*host.Runtime, error) {
		return s.open(ctx, p.Root, p.ID, false)
	}})
	s.gate = gate.New(gate.Config{Authority: rules, Workspaces: s.host, State: in.store, Limits: in.limits, Choose: s.choose, Log: o.log})
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.keepHouse(ctx)
	return s, nil
}

// rules are the owner's for who calls this server.
func (s *served) rules() authority {
	return authority{store: s.store, run: s.run.trusted || s.run.bypass, remote: s.remote, now: s.now()}
}

// now is the clock.
func (in *installation) now() func() time.Time {
	if c := clockOf(in.dir); c != nil {
		return c
	}
	return time.Now
}

// end waits for the calls that run and closes everything but the installation.
func (s *served) end(ctx context.Context) error {
	err := s.host.End(ctx)
	s.stop()
	<-s.idle
	return err
}

// keepHouse removes what is older than it need be, at the start and once an hour.
func (s *served) keepHouse(ctx context.Context) {
	defer close(s.idle)
	for wait := 5 * time.Second; ; wait = time.Hour {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := s.tidy(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("what is old could not be removed", "cause", err)
		}
	}
}

// tidy removes rows, backups and plans that have had their time. Changes do so on their way,
// too; where nothing is changed any more, only this does.
func (s *served) tidy(ctx context.Context) error {
	l := s.limits()
	return errors.Join(
		s.store.Prune(ctx, state.Retention{
			Audit:       time.Duration(l.AuditRetentionDays) * 24 * time.Hour,
			Idempotency: time.Duration(l.IdempotencyRetentionMs) * time.Millisecond,
		}),
		s.tidyActive(ctx),
	)
}

func (s *served) tidyActive(ctx context.Context) error {
	if active := s.host.Active(); active != nil {
		return active.Tidy(ctx)
	}
	return nil
}

// open opens a root as a workspace with all its services.
func (s *served) open(ctx context.Context, root, project string, unsafe bool) (*host.Runtime, error) {
	tree, offers, note, err := s.tree(root, unsafe)
	if err != nil {
		return nil, err
	}
	id, epoch := s.store.WorkspaceID(tree.Root()), contract.NewID(contract.PrefixBoot, 16)
	dir := tree.Identity()
	_, replaced, err := s.store.OpenWorkspace(ctx, tree.Root(), dir.Dev, dir.Ino, epoch)
	if err != nil {
		return nil, closing(tree, err)
	}
	if replaced {
		s.log.Warn("the directory is not the one it was: saved trust and clients' access were reset", "workspace", id)
	}
	finder := search.New(search.Config{Tree: tree, Workspace: id, Epoch: epoch, Limits: s.config.Limits, Projects: s, Now: time.Now})
	changes, err := change.New(change.Config{
		Tree: tree, State: s.store, WorkspaceID: id, Epoch: epoch, Limits: s.config.Limits, Find: finder,
		Asks: func(ctx context.Context, p contract.Principal) (bool, error) {
			st, err := s.rules().Standing(ctx, p, id)
			return policy.Decide(contract.ClassMutate, st.Trust) == policy.Ask, err
		},
	})
	if err != nil {
		return nil, closing(tree, err)
	}
	if err := changes.Reconcile(ctx); err != nil {
		s.log.Warn("what an earlier process left could not be looked at", "workspace", id, "cause", err)
	}
	jobs, err := s.jobs(ctx, tree, id, epoch, offers)
	if err != nil {
		return nil, closing(tree, errors.Join(err, changes.Close()))
	}
	repository, clock := s.git(tree, id), s.schedules(tree, id)
	clock.Log = s.log
	services := services{
		files:  workspace.NewService(tree, s.config.Limits, s),
		search: finder,
		change: changes,
		notes:  notes.New(s.store, id),
		overview: overview.New(overview.Config{
			Tree: tree, Store: s.store, Workspace: id, Epoch: epoch, Limits: s.limits, View: s, Projects: s.projects,
			Standing: func(ctx context.Context) (contract.Trust, contract.AccessMode, error) {
				return s.rules().standing(ctx, id)
			},
			Surface: shownSurface(s.surface), Path: filepath.SplitList(s.path), SearchBackend: search.Backend, Note: note, Waiting: changes.Waiting,
			Tasks: jobs.Tasks, Isolation: s.walls.isolation, WebFetch: s.config.AllowWebFetch,
			Place: jobs.Place,
			Git: func(ctx context.Context) (overview.Repository, error) {
				r, err := repository.Summary(ctx)
				return overview.Repository{IsRepo: r.IsRepo, Branch: r.Branch, Changed: r.Dirty, Untracked: r.Untracked}, err
			},
		}),
		jobs:     jobs,
		git:      repository,
		schedule: clock,
		web:      s.walls.web,
	}
	return &host.Runtime{
		ID: id, Epoch: epoch, Project: project, Tree: tree, Ops: services.operations(), Jobs: jobs,
		Clock: func(ctx context.Context) error { return clock.Run(ctx, launches{jobs}) },
		Tidy:  func(ctx context.Context) error { return errors.Join(changes.Prune(ctx), jobs.Tidy(ctx)) },
		Close: func() error { return errors.Join(jobs.Close(), changes.Close(), tree.Close()) },
	}, nil
}

// tree opens a root with the owner's rules and what the repository excludes, and says what it
// offers to run. note says why its hints are not used.
func (in *installation) tree(root string, unsafe bool) (tree *workspace.Tree, offers []config.Task, note string, err error) {
	o := workspace.Options{
		Hidden: []string{in.dir}, SecretDeny: in.config.SecretDeny, SecretAllow: in.config.SecretAllow,
		AllowUnsafe: unsafe, Home: in.home, MaxFile: int64(in.config.Limits.ReadFileBytes),
	}
	if tree, err = workspace.Open(root, o); err != nil {
		return nil, nil, "", err
	}
	hints, note := hints(tree)
	if o.Exclude = hints.Exclude; len(o.Exclude) > 0 {
		_ = tree.Close()
		tree, err = workspace.Open(root, o)
	}
	return tree, hints.Tasks, note, err
}

// hints reads what the repository says about itself. note says why it is not used.
func hints(tree *workspace.Tree) (h config.Hints, note string) {
	p, err := workspace.ParsePath(config.HintsName)
	if err != nil {
		return h, ""
	}
	data, _, err := tree.Read(p, config.MaxHints)
	if errors.Is(err, contract.NotFound) {
		return h, ""
	}
	if err != nil {
		return h, config.HintsName + " is ignored: " + fault.From(err).Error()
	}
	if h, err = config.ParseHints(data); err != nil {
		return config.Hints{}, fault.From(err).Error()
	}
	return h, ""
}

// View gives a project for reading, once the host is there.
func (s *served) View(ctx context.Context, p contract.Principal, id string) (workspace.View, error) {
	return s.host.View(ctx, p, id)
}

// projects are those a caller may use.
func (s *served) projects(ctx context.Context, p contract.Principal) ([]overview.Project, error) {
	all, err := s.store.Projects(ctx, false)
	if err != nil {
		return nil, err
	}
	var list []overview.Project
	for _, r := range all {
		st, err := s.rules().Standing(ctx, p, r.Workspace)
		if err != nil {
			return nil, err
		}
		if st.Scopes.Has(contract.ScopeRead) {
			list = append(list, overview.Project{ProjectID: r.ID, DisplayName: r.Name, WorkspaceID: r.Workspace, Availability: string(r.Readiness())})
		}
	}
	return list, nil
}

// services are everything that has operations, of one workspace.
type services struct {
	files    *workspace.Service
	search   *search.Service
	change   *change.Service
	notes    *notes.Service
	overview *overview.Service
	jobs     *job.Service
	git      *git.Service
	schedule *schedule.Service
	web      *web.Service
}

// catalogue are the operations of the catalogue that exist. Nil services show theirs too.
func (s services) catalogue() []contract.Op {
	return surface.Order(slices.Concat(s.overview.Ops(), s.files.Ops(), s.search.Ops(), s.change.Ops(), s.notes.Ops(), s.jobs.Ops(), s.git.Ops(), s.schedule.Ops(), s.web.Ops()))
}

// operations are those, and dodo_discover over them.
func (s services) operations() []contract.Op {
	ops := s.catalogue()
	return append(ops, surface.Discover(ops))
}

// shownSurface counts the tools of each surface.
func shownSurface(k surface.Kind) overview.Surface {
	ops := services{}.catalogue()
	return overview.Surface{
		Kind: string(k), Full: surface.Count(surface.Full, ops), Compact: surface.Count(surface.Compact, ops), Hybrid: surface.Count(surface.Hybrid, ops),
	}
}

func closing(tree *workspace.Tree, err error) error {
	_ = tree.Close()
	return err
}
