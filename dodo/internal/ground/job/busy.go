package job

// Busy reports that a job of this service runs, or is being started.
func (s *Service) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots > 0
}
