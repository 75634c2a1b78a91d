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

// Config is what a service needs.
type Config struct {
	Tree      *workspace.Tree
	Workspace string // the workspace's id
	Epoch     string
	Limits    contract.Limits
	Projects  workspace.Projects // nil: arguments that name a project give NOT_SUPPORTED
	Now       func() time.Time
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

func (s *Service) room() room { return room{s.c.Limits.Room()} }
