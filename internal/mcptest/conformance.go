package mcptest

import (
	"path/filepath"
	"testing"
)

// Conformance returns the beginning of a command line of the official conformance suite. The
// test is skipped when the suite is not installed and may not be.
func Conformance(t testing.TB) []string {
	t.Helper()
	node := Node(t)
	dir := installed(t, "conformance", filepath.Dir(node))
	return []string{node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")}
}
