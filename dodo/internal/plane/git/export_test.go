package git

import (
	"time"

	"localmcp/dodo/internal/ground/sandbox"
)

// testMode is the sandbox that the tests of this package have.
const testMode = sandbox.Require

// Patient sets how long a run that only reads may take.
func (s *Service) Patient(d time.Duration) { s.patience = d }

// Tested is a service as tests have it. fail may be nil.
func Tested(c Config, fail func(point string) error) *Service {
	s := New(c)
	s.mode, s.fail = testMode, fail
	return s
}

// Unwalled is a service whose git nothing but its arguments and its environment keeps from
// running programs.
func (s *Service) Unwalled() { s.mode = sandbox.Off }

// Harmless is harmless.
var Harmless = harmless

// Recent is atLeast for the oldest git that is used.
func Recent(version string) bool { return atLeast(version, leastVersion) }
