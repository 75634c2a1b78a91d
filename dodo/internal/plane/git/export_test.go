package git

import (
	"context"

	"localmcp/dodo/internal/ground/sandbox"
)

// testMode is the sandbox that the tests of this package have: Require where the walls are
// built.
const testMode = sandbox.Off

// Tested is a service as tests have it. fail may be nil.
func Tested(c Config, fail func(point string) error) *Service {
	s := New(c)
	s.mode, s.fail = testMode, fail
	return s
}

// Shown are the places outside of the workspace that git is given.
func Shown(ctx context.Context, s *Service) (read, write []string, err error) {
	r, err := s.find(ctx)
	if err != nil || r == nil {
		return nil, nil, err
	}
	return r.read, r.write, nil
}

// Harmless is harmless.
var Harmless = harmless

// Recent is recent.
var Recent = recent
