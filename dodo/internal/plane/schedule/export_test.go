package schedule

import "context"

// Tick looks once at what is due, and waits for the launches.
func (s *Service) Tick(ctx context.Context, l Launcher) error {
	err := s.tick(ctx, l)
	s.begun.all.Wait()
	return err
}

// Look is Tick without the waiting.
func (s *Service) Look(ctx context.Context, l Launcher) error { return s.tick(ctx, l) }

// Wait waits for the launches.
func (s *Service) Wait() { s.begun.all.Wait() }
