//go:build !linux

package sandbox

import (
	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

func startPlain(Spec) (*Process, error) {
	return nil, fault.New(contract.NotSupported, "commands cannot be run on this system yet").WithHint("run dodo on Linux")
}

// Helper does nothing here.
func Helper() {}
