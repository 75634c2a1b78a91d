//go:build !weak

package confine

// A weakness is nothing here: every wall of a [Jail] is built. See weak.go.
type weakness struct{}

func (weakness) skips(string) bool { return false }
