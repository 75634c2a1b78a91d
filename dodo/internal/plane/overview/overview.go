package overview

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
)

// Config is what the overview of a workspace is made of.
type Config struct {
	Tree      *workspace.Tree
	Store     *state.Store
	Workspace string // id
	Epoch     string
	Limits    func() contract.Limits
	// Standing says how far callers are trusted now.
	Standing func(ctx context.Context) (trust contract.Trust, mode contract.AccessMode, err error)
	// Projects are the registered projects a caller may use; nil when there is no registry.
	Projects func(ctx context.Context, p contract.Principal) ([]Project, error)
	// View finds another project for reading.
	View workspace.Projects
	// Surface says which tools the client sees.
	Surface Surface
	// Path are the directories where programs are looked for.
	Path []string
	// SearchBackend names what searches.
	SearchBackend string
	// Waiting are the changes of the workspace that only the owner can end; nothing else is
	// changed until then. Nil when nothing can be changed.
	Waiting func(ctx context.Context) (ids []string, err error)
	// Tasks are what the workspace offers to run; nil where nothing can be run.
	Tasks func(ctx context.Context) ([]job.Recipe, error)
	// Place is where programs are asked for their versions; nil where nothing can be run.
	Place *sandbox.Place
	// Git counts what is not committed, by asking git; nil where git cannot be asked.
	Git func(ctx context.Context) (Repository, error)
	// Isolation is how commands are confined here: an isolation of package sandbox, or "unavailable".
	Isolation func(ctx context.Context) string
	// WebFetch says that pages of the web may be read.
	WebFetch bool
	// Note says why .dodo.json was not used, when it was not.
	Note string
}

// Repository is the workspace's, as git tells.
type Repository struct {
	IsRepo             bool
	Branch             string
	Changed, Untracked int
}

// Project is a registered project as callers see it.
type Project struct {
	ProjectID   string `json:"projectId"`
	DisplayName string `json:"displayName"`
	WorkspaceID string `json:"workspaceId"`
	// Availability is the state of its directory, such as ready or missing.
	Availability string `json:"availability"`
}

// Surface says which tools there are.
type Surface struct {
	Kind                  string // full, compact or hybrid
	Compact, Full, Hybrid int    // how many tools each has
}

// Service tells about one workspace.
type Service struct {
	Config
	versions versions
}

// New returns the overview of a workspace.
func New(c Config) *Service { return &Service{Config: c} }

// Ops are the operations. A nil Service shows them too.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{s.projectOverview(), s.environmentInfo(), s.approvalStatus()}
}
