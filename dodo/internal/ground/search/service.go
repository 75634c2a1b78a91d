package search

import (
	"context"
	"errors"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// Backend is what searches, as answers name it.
const Backend = "builtin"

// A Target is a workspace that is searched.
type Target struct {
	Tree        *workspace.Tree
	WorkspaceID string
	Epoch       string
}

// A Project is one of the owner's other workspaces, opened for reading.
type Project struct {
	Target
	ID           string
	DisplayName  string
	Availability string // in a word, such as ready
	StatusText   string
}

// Projects finds the owner's other workspaces.
type Projects interface {
	// Project opens one for a caller; release ends its use. What the caller may not read
	// gives FORBIDDEN, what cannot be read now NOT_FOUND.
	Project(ctx context.Context, who contract.Principal, id string) (p Project, release func(), err error)
}

// Config is what a service needs.
type Config struct {
	Target
	Limits   contract.Limits
	Projects Projects // nil: there are none
	Now      func() time.Time
}

// A Service answers searches in one workspace. Its cursors end with it.
type Service struct {
	c       Config
	cursors cursors
	buffers sync.Pool // of *buffers
}

// New makes the service of a workspace that is open.
func New(c Config) *Service { return &Service{c: c} }

// Ops are the operations, in the order of the catalogue. They can be listed without a
// workspace.
func (s *Service) Ops() []contract.Op {
	return []contract.Op{
		contract.Read(searchCode, s.searchCode),
		contract.Read(globFiles, s.globFiles),
	}
}

// project opens the project a call names.
func (s *Service) project(ctx context.Context, who contract.Principal, id string) (Project, func(), error) {
	if !contract.IsProjectID(id) {
		return Project{}, nil, fault.New(contract.InvalidInput, "that is not the id of a project").
			WithHint("project_overview lists the projects that can be read")
	}
	if s.c.Projects == nil {
		return Project{}, nil, fault.New(contract.Forbidden, "there is no project of that id that this caller may read").
			WithHint("project_overview lists the projects that can be read")
	}
	return s.c.Projects.Project(ctx, who, id)
}

// within runs a search in the time the owner gives one.
func (s *Service) within(ctx context.Context, f func(context.Context) error) error {
	limit := time.Duration(s.c.Limits.SearchTimeoutMs) * time.Millisecond
	sub, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(sub)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fault.Wrap(contract.Timeout, err, "the search did not end in %v", limit).
			WithHint("narrow it with paths or fileGlob, or look for something that is quicker to find").Retry()
	}
	return err
}

// room is what is left of an answer, in bytes of JSON.
type room struct{ left int }

// takes reports whether values fit together, and takes their room.
func (r *room) takes(values ...any) bool {
	size := 0
	for _, v := range values {
		data, err := op.Encode(v)
		if err != nil {
			return false
		}
		size += len(data) + 1
	}
	if size > r.left {
		return false
	}
	r.left -= size
	return true
}

// envelope is kept free for what stands around an answer's lists.
const envelope = 4 << 10

// usual is the size an answer is kept to that was not asked to be long, in bytes.
const usual = 10_000

func (s *Service) room() room { return room{s.c.Limits.ToolContentBytes - envelope} }
