package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/git"
	"localmcp/dodo/internal/plane/web"
	"localmcp/internal/fault"
)

// walls are what stands between the workspaces and the rest of the machine: for commands,
// and for what reaches the network.
type walls struct {
	mode    sandbox.Mode
	network sandbox.Network
	box     *sandbox.Box
	dialer  *egress.Dialer
	web     *web.Service
	environ []string
}

func newWalls(in *installation, environ []string) (*walls, error) {
	c := in.config
	dialer, err := egress.New(egress.Config{Allow: c.EgressAllow, Deny: c.EgressDeny})
	if err != nil {
		return nil, err
	}
	return &walls{
		mode: sandbox.Mode(c.CommandSandbox), network: sandbox.Network(c.JobNetwork), dialer: dialer, environ: environ,
		box: sandbox.New(sandbox.Options{Path: filepath.SplitList(in.path), Hidden: []string{in.dir}, Read: c.SandboxReadPaths, Home: in.home}),
		web: web.New(web.Config{Allowed: c.AllowWebFetch, Dialer: dialer, Limits: c.Limits}),
	}, nil
}

// isolation is how commands are confined.
func (w *walls) isolation(ctx context.Context) string {
	if w.mode == sandbox.Off {
		return string(sandbox.None)
	}
	r := w.box.Probe(ctx)
	if r.Best == sandbox.None || r.Best == sandbox.Reduced && w.mode == sandbox.Require {
		return unavailable
	}
	return string(r.Best)
}

// ready gives NOT_SUPPORTED where a command that must be walled in would not be run.
func (w *walls) ready(ctx context.Context) error {
	r := w.box.Probe(ctx)
	switch {
	case r.Best == sandbox.Full || r.Best == sandbox.Bwrap:
		return nil
	case ctx.Err() != nil:
		return ctx.Err() // it says nothing about the machine
	}
	return fault.New(contract.NotSupported, "commands cannot be confined on this machine, so none can be scheduled to run in the sandbox: %s", r.Reasons[sandbox.Full]).
		WithHint("the owner sees what is missing with: dodo doctor")
}

// cachesName is the directory in the installation's that has the homes of commands.
const cachesName = "caches"

// jobs makes the service that runs the commands of a workspace.
func (s *served) jobs(ctx context.Context, tree *workspace.Tree, id, epoch string, offers []config.Task) (*job.Service, error) {
	w := s.walls
	place := w.box.Place(tree.Root(), filepath.Join(s.dir, cachesName, id), keptBy(tree))
	c := job.Config{
		Tree: tree, Place: place, State: s.store, WorkspaceID: id, Epoch: epoch, Limits: s.config.Limits,
		Mode: func() sandbox.Mode { return w.mode }, Network: func() sandbox.Network { return w.network },
		Connect: proxy{w.dialer}, Environ: w.environ, EnvAllow: s.config.EnvAllowlist, Log: s.log,
	}
	for _, t := range offers {
		c.Offers = append(c.Offers, job.Offer{ID: t.ID, Title: t.Title, Program: t.Program, Args: t.Args, Cwd: t.Cwd})
	}
	return job.New(ctx, c)
}

// keptBy finds what a workspace keeps from commands.
func keptBy(tree *workspace.Tree) func(context.Context) (sandbox.Kept, error) {
	return func(ctx context.Context) (sandbox.Kept, error) {
		k, err := tree.Kept(ctx)
		return sandbox.Kept{Secrets: k.Secrets, Git: k.Git, Fixed: k.Fixed, Closed: k.Closed}, err
	}
}

// git makes the service that runs git in a workspace. One operation runs git several times:
// what is kept from it is looked for once. Nothing that a repository says is run there; its
// hooks are, where the owner lets them, and for each of them it is looked for anew.
func (s *served) git(tree *workspace.Tree, id string) *git.Service {
	w := s.walls
	find := keptBy(tree)
	var mu sync.Mutex // guards what follows
	var kept sandbox.Kept
	var found time.Time
	home := filepath.Join(s.dir, cachesName, id+"-git")
	place := w.box.Place(tree.Root(), home, func(ctx context.Context) (sandbox.Kept, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(found) < keptFor && inPlace(kept.Secrets) {
			return kept, nil
		}
		k, err := find(ctx)
		if err == nil {
			kept, found = k, time.Now()
		}
		return k, err
	})
	return git.New(git.Config{
		Tree: tree, Place: place, HooksPlace: w.box.Place(tree.Root(), home, find), Limits: s.config.Limits, Hooks: s.config.GitHooks, Home: s.home, Hidden: []string{s.dir}, Now: time.Now,
	})
}

// inPlace reports whether paths are still there: who moved one wants no fault for it.
func inPlace(paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}

// keptFor is how long git's runs go by what was found: it hides nothing from them that they
// would show.
const keptFor = 2 * time.Second

// proxy lets the commands of one job out by the owner's rules.
type proxy struct{ dialer *egress.Dialer }

var _ job.Connector = proxy{}

func (p proxy) Serve(ctx context.Context, l net.Listener) (refused job.Refused, err error) {
	x := egress.NewProxy(p.dialer)
	err = x.Serve(ctx, l)
	_, refused.Hosts = x.Refused()
	refused.Remedy = x.Remedy()
	return refused, err
}
