//go:build weak

package sandbox

// This file is in no program that anyone installs: tests build with it what leaves a wall
// out, to see that it is missed, and what takes a level away, to see the next one.

// Without leaves one step of the walls out.
func (s *Spec) Without(step string) { s.skip = step }

// Only takes every level but one away.
func (b *Box) Only(level Isolation) { b.only = level }
