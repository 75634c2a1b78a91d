package change

import (
	"context"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// History lists the newest changes of the workspace, at most limit; older ones than that of
// the id before, unless it is empty.
func (s *Service) History(ctx context.Context, before string, limit int) ([]Changeset, error) {
	where, args := "workspace = ?", []any{s.WorkspaceID}
	if before != "" {
		there, err := s.journal.entries(ctx, where+" AND id = ?", s.WorkspaceID, before)
		if err != nil {
			return nil, err
		}
		if len(there) == 0 {
			return nil, fault.New(contract.NotFound, "cursor is not one that change_history gave, or its change is forgotten by now").
				WithHint("leave cursor out to begin with the newest")
		}
		where, args = where+" AND seq < (SELECT seq FROM changesets WHERE id = ?)", append(args, before)
	}
	entries, err := s.journal.entries(ctx, where+" ORDER BY seq DESC LIMIT ?", append(args, limit)...)
	list := make([]Changeset, len(entries))
	for i, e := range entries {
		list[i] = e.Changeset
	}
	return list, err
}

// upkeepEvery is how often a process that changes files prunes what is old.
const upkeepEvery = 10 * time.Minute

// tend prunes now and then, behind a change. What fails is tried again later: it is
// housekeeping and takes nothing from the change.
func (s *Service) tend(ctx context.Context) {
	now := s.Now()
	s.mu.Lock()
	due := now.Sub(s.upkeep) >= upkeepEvery
	if due {
		s.upkeep = now
	}
	s.mu.Unlock()
	if due {
		_ = s.Prune(ctx)
	}
}

// Prune removes backups and plans that have had their time, and the oldest of the history.
func (s *Service) Prune(ctx context.Context) error {
	if err := s.plans.sweep(ctx); err != nil {
		return err
	}
	if err := s.journal.prune(ctx); err != nil {
		return err
	}
	return s.backups.prune(ctx, BackupBytes)
}

// Waiting are the ids of the changes of the workspace that wait for the owner, the oldest
// first. While there is one, nothing else is changed.
func (s *Service) Waiting(ctx context.Context) (ids []string, err error) {
	list, err := s.journal.entriesBut(ctx, func(string) bool { return true }, "workspace = ? AND status = 'recovery_required' ORDER BY seq", s.WorkspaceID)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids, err
}

// Located is a change together with the workspace it is of.
type Located struct {
	Workspace string // id
	Changeset
}

// Everywhere lists changes of all workspaces of an installation, the newest first: those
// that wait for the owner, or the one of an id. It is for the owner's commands, which need
// no open workspace to find out which one they are about.
func Everywhere(ctx context.Context, store *state.Store, id string) ([]Located, error) {
	j := journal{store: store}
	where, args := "status = 'recovery_required' ORDER BY seq DESC", []any(nil)
	if id != "" {
		where, args = "id = ?", []any{id}
	}
	entries, err := j.entries(ctx, where, args...)
	if err != nil {
		return nil, err
	}
	list := make([]Located, len(entries))
	for i, e := range entries {
		list[i].Changeset = e.Changeset
		if list[i].Workspace, err = j.workspaceOf(ctx, e.ID); err != nil {
			return nil, err
		}
	}
	return list, nil
}
