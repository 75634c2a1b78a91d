//go:build !linux

package sandbox

import (
	"context"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Probe finds nothing here.
func (b *Box) Probe(context.Context) Report {
	const why = "commands are confined on Linux only"
	return Report{Best: None, Reasons: map[Isolation]string{Full: why, Bwrap: why, Reduced: why}, Ungrouped: why}
}

// Start runs nothing here.
func (p *Place) Start(context.Context, Spec) (*Process, error) {
	return nil, fault.New(contract.NotSupported, "commands cannot be run on this system yet").WithHint("run dodo on Linux")
}
