package job

import "time"

// ReportEvery makes waiting callers hear of it more often.
func (s *Service) ReportEvery(d time.Duration) { s.reportEvery = d }

// BreakSpools makes all output unreadable.
func (s *Service) BreakSpools() error { return s.spools.root.Close() }
