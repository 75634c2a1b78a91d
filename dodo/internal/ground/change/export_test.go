package change

import "context"

// FailAt makes f decide at every point of a change whether it fails there. A panic of f
// leaves everything as a process leaves it that dies.
func (s *Service) FailAt(f func(point string) error) { s.fail = f }

// PruneBackups is Prune of backups with another bound of bytes.
func (s *Service) PruneBackups(limit int64) error {
	return s.backups.prune(context.Background(), limit)
}
