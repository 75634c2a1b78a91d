//go:build weak

package walls

import "localmcp/internal/confine"

// This file is in no program that anyone installs: tests build with it what leaves a wall
// out, to see that it is missed.

// Skips reports whether a step is to be left out.
func (p *Plan) Skips(step string) bool { return p.Skip == step }

func (p *Plan) weaken(j confine.Jail) confine.Jail {
	j.Without = p.Skip
	return j
}
