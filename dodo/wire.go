package main

import (
	"context"
	"log/slog"
	"time"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/policy"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/host"
	"localmcp/dodo/internal/plane/notes"
	"localmcp/internal/fault"
)

// installation is the opened installation directory.
type installation struct {
	dir    string
	home   string
	config config.Config
	store  *state.Store
}

// install opens the installation directory, and makes it where there is none.
func (p *program) install(ctx context.Context) (*installation, error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return nil, err
	}
	c, err := config.Ensure(ctx, dir)
	if err != nil {
		return nil, err
	}
	store, err := state.Open(ctx, dir, state.Options{})
	if err != nil {
		return nil, err
	}
	in := &installation{dir: dir, home: p.env["HOME"], config: c, store: store}
	if err := store.SetAccessMode(ctx, c.AccessMode); err != nil {
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
	root    string
	unsafe  bool // the owner said so on the command line; never for another root
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
	project := ""
	active, err := s.open(ctx, o.root, project, o.unsafe)
	if err != nil {
		return nil, err
	}
	rules := authority{store: in.store}
	s.host = host.New(active, host.Config{Authority: rules, Store: in.store, Open: func(ctx context.Context, p state.Project) (*host.Runtime, error) {
		return s.open(ctx, p.Root, p.ID, false)
	}})
	s.gate = gate.New(gate.Config{Authority: rules, Workspaces: s.host, State: in.store, Limits: in.limits, Log: o.log})
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go s.keepHouse(ctx)
	return s, nil
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
		l := s.limits()
		err := s.store.Prune(ctx, state.Retention{
			Audit:       time.Duration(l.AuditRetentionDays) * 24 * time.Hour,
			Idempotency: time.Duration(l.IdempotencyRetentionMs) * time.Millisecond,
		})
		if err != nil && ctx.Err() == nil {
			s.log.Warn("old rows could not be removed", "cause", err)
		}
	}
}

// open opens a root as a workspace with all its services.
func (s *served) open(ctx context.Context, root, project string, unsafe bool) (*host.Runtime, error) {
	tree, err := workspace.Open(root, workspace.Options{
		Hidden: []string{s.dir}, SecretDeny: s.config.SecretDeny, SecretAllow: s.config.SecretAllow,
		AllowUnsafe: unsafe, Home: s.home, MaxFile: int64(s.config.Limits.ReadFileBytes),
	})
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
	return &host.Runtime{
		ID: id, Epoch: epoch, Project: project, Tree: tree,
		Ops:   operations(notes.New(s.store, id)),
		Close: tree.Close,
	}, nil
}

func closing(tree *workspace.Tree, err error) error {
	_ = tree.Close()
	return err
}

// operations are those of every service. Nil services show what they would have.
func operations(n *notes.Service) []contract.Op {
	ops := n.Ops()
	return append(ops, surface.Discover(surface.Order(ops)))
}

// listed are the operations of the catalogue that exist.
func (s *served) listed() []contract.Op {
	ops := s.host.Active().Ops
	return ops[:len(ops)-1] // dodo_discover is the last, and a tool of the small surfaces only
}

// authority is the owner's rules as they are now.
type authority struct {
	store *state.Store
}

// Principal knows the owner's own client.
func (a authority) Principal(_ context.Context, caller string) (contract.Principal, error) {
	if caller != contract.LocalGrant {
		return contract.Principal{}, fault.New(contract.AuthRequired, "nobody is known by that name")
	}
	return contract.LocalOwner(), nil
}

func (a authority) Standing(ctx context.Context, p contract.Principal, workspace string) (gate.Standing, error) {
	now, err := a.store.Authority(ctx, workspace, p.ClientID)
	if err != nil {
		return gate.Standing{}, err
	}
	return gate.Standing{
		Scopes:  policy.Scopes(p, now.AccessMode, now.ClientScopes),
		Trust:   policy.Trust(now.Trust, now.AccessMode, false),
		Version: now.PolicyVersion,
	}, nil
}
