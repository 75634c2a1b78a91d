// Command helper is what tests of package sandbox, and of packages above it, run as the
// first process of a sandbox: a test binary under the race detector cannot confine itself.
package main

import (
	"os"

	"localmcp/dodo/internal/ground/sandbox"
)

func main() {
	sandbox.Helper()
	os.Exit(2)
}
