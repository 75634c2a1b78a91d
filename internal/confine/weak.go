//go:build weak

package confine

// A weakness is a wall of a [Jail] that is left out, for the test that [Jail.Verify] misses
// it. No program that anyone installs is built with it.
type weakness struct{ Without string }

func (w weakness) skips(wall string) bool { return w.Without == wall }
