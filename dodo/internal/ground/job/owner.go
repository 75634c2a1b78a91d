package job

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
)

// A Job is one as the owner sees it.
type Job struct {
	ID, Principal  string
	Status         Status
	Kind           Kind
	Program        string
	Args           []string // the beginning of them, keys masked
	ArgsCut        bool
	Cwd, TaskID    string
	ExitCode       *int
	Signal         string
	Isolation      sandbox.Isolation
	Notes          []string
	Created        time.Time
	Started, Ended time.Time // zero when that did not happen
	Timeout        time.Duration
	StdoutBytes    int64
	StderrBytes    int64
	Here           bool // it runs in this process, which can cancel it
}

// owner may see and end everything.
var owner = contract.LocalOwner()

// List gives the newest jobs of the workspace, whoever started them.
func (s *Service) List(ctx context.Context, most int) ([]Job, error) {
	list, err := s.list(ctx, owner, "", most)
	if err != nil {
		return nil, err
	}
	all := make([]Job, len(list))
	for i, r := range list {
		all[i] = s.job(r)
	}
	return all, nil
}

// Job gives one of them. An unknown one gives JOB_NOT_FOUND.
func (s *Service) Job(ctx context.Context, id string) (Job, error) {
	r, err := s.visible(ctx, owner, id)
	if err != nil {
		return Job{}, err
	}
	return s.job(r), nil
}

// Workspace is the id of the workspace that a job belongs to, be it another one than this
// service's. An unknown job gives JOB_NOT_FOUND.
func (s *Service) Workspace(ctx context.Context, id string) (string, error) {
	list, err := s.rows(ctx, "id = ?", id)
	if err == nil && len(list) == 0 {
		err = notFound(id)
	}
	if err != nil {
		return "", err
	}
	return list[0].Workspace, nil
}

func (s *Service) job(r *record) Job {
	return Job{
		ID: r.ID, Principal: r.Principal, Status: r.Status, Kind: r.Kind, Program: r.Program, Args: r.Args, ArgsCut: r.ArgsCut, Cwd: r.Cwd, TaskID: r.Recipe,
		ExitCode: r.ExitCode, Signal: r.Signal, Isolation: r.Isolation, Notes: r.Notes, Created: r.Created, Started: r.Started, Ended: r.Ended,
		Timeout: r.Timeout, StdoutBytes: r.OutBytes, StderrBytes: r.ErrBytes, Here: !r.over() && s.running(r.ID) != nil,
	}
}

// Output reads what a job wrote, from an offset on and at most so many bytes of it.
func (s *Service) Output(ctx context.Context, id string, of Stream, offset int64, most int, raw bool) (Piece, error) {
	r, err := s.visible(ctx, owner, id)
	if err != nil {
		return Piece{}, err
	}
	return s.piece(r, of, offset, most, most*8, raw) // as much as it is: room for every way of writing it
}

// Cancel ends a job, and says how it stands: canceling, or how it was over already. One of
// another process gives CONFLICT.
func (s *Service) Cancel(ctx context.Context, id string) (status string, err error) {
	r, err := s.visible(ctx, owner, id)
	if err != nil {
		return "", err
	}
	return s.cancel(r)
}
