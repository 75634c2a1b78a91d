//go:build !linux

package confine

import (
	"context"

	"localmcp/internal/fault"
)

func notSupported() error {
	return fault.New(NotSupported, "this system has no kernel confinement that the program knows").
		WithHint("run it on Linux")
}

// Self is not supported here.
func Self(Policy, ...int) (State, error) { return State{}, notSupported() }

// Identify is not supported here.
func Identify(string, bool) (ID, error) { return ID{}, notSupported() }

// Again is the exit status of a worker that wants a new one in its place.
const Again = 75

// Try tries nothing here.
func Try(Trial) []Attempt { return nil }

// Verify is not supported here.
func Verify(State, Trial) error { return notSupported() }

// Supervise is not supported here.
func Supervise(context.Context, []string) (int, error) { return 0, notSupported() }

// Letter is what a worker leaves for the next one.
type Letter struct{}

// Inherit is not supported here.
func Inherit() (*Letter, []byte, error) { return nil, nil, notSupported() }

// Leave is not supported here.
func (*Letter) Leave([]byte) error { return notSupported() }

// Descriptors are none here.
func (*Letter) Descriptors() []int { return nil }
