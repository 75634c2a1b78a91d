package git

import (
	"context"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/workspace"
)

// The values of [Config.Hooks].
const (
	HooksOff     = "off"
	HooksSandbox = "sandbox"
)

// Config is what a Service stands on.
type Config struct {
	Tree  *workspace.Tree
	Place *sandbox.Place
	// HooksPlace is where hooks run, which are the repository's own programs: what is kept from
	// them must be looked for anew each time. Nil is Place.
	HooksPlace *sandbox.Place
	Limits     contract.Limits
	// Hooks says whether git_commit runs the repository's hooks in the sandbox; what is not
	// HooksSandbox is off.
	Hooks string
	// Home is the owner's home directory, of which the name and address in git's global
	// configuration are read; empty when there is none.
	Home string
	// Hidden are directories in which no repository is used, such as the installation's own.
	Hidden []string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service answers for the repository of one workspace. It is safe for use by several
// goroutines.
type Service struct {
	Config
	// Only tests have others than New gives.
	mode     sandbox.Mode
	patience time.Duration

	mu    sync.Mutex // guards what follows
	knows string     // the git program that was found new enough
	hooks bool       // it can run hooks, too

	fail func(point string) error // tests make a step of a commit fail here; nil otherwise
}

// New makes the service of a workspace. Nothing is looked for yet: a workspace may become a
// repository later.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.HooksPlace == nil {
		c.HooksPlace = c.Place
	}
	return &Service{Config: c, mode: sandbox.Require, patience: readTime}
}

// Ops are the operations, in the order of the catalogue. A nil Service shows them too.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{s.status(), s.diff(), s.log(), s.commit()}
}

// at is where tests make things fail.
func (s *Service) at(point string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(point)
}

// reading describes an operation that only looks.
func reading(name, title, doc string) contract.Def {
	return contract.Def{
		Name: name, Title: title, Doc: doc, Gateway: "dodo_git_read",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}
}

// session is git for one operation: the repository, and what its configuration says.
type session struct {
	*Service
	repo   *repo
	runner runner
	config settings
}

// open finds the repository and reads its configuration; nil without an error is a workspace
// without a repository.
func (s *Service) open(ctx context.Context) (*session, error) {
	if err := s.Tree.Check(); err != nil {
		return nil, err
	}
	r, err := s.find(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	g := &session{Service: s, repo: r}
	if g.runner, err = s.runner(ctx, r); err != nil {
		return nil, err
	}
	bare := g.runner
	bare.overrides = nil // they would be in the list; reading it runs nothing
	out, err := bare.run(ctx, call{args: []string{"config", "--list", "-z"}})
	if err != nil {
		return nil, err
	}
	g.config = parseSettings(out.bytes)
	g.runner.overrides, err = g.config.overrides()
	return g, err
}
