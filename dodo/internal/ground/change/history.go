package change

import (
	"context"
	"time"
)

// History lists the newest changes of the workspace, at most limit.
func (s *Service) History(ctx context.Context, limit int) ([]Changeset, error) {
	return s.list(ctx, "workspace = ? ORDER BY seq DESC LIMIT ?", s.WorkspaceID, limit)
}

// Changeset returns one change of the workspace; an unknown id gives NOT_FOUND.
func (s *Service) Changeset(ctx context.Context, id string) (Changeset, error) {
	e, err := s.journal.find(ctx, id)
	if err != nil {
		return Changeset{}, err
	}
	return e.Changeset, nil
}

func (s *Service) list(ctx context.Context, where string, args ...any) ([]Changeset, error) {
	entries, err := s.journal.entries(ctx, where, args...)
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
