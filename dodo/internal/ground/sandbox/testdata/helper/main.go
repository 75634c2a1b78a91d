// Command helper is what tests of package sandbox, and of packages above it, run as the
// first process of a sandbox: a test binary under the race detector cannot confine itself.
package main

import (
	"os"

	_ "localmcp/dodo/internal/ground/walls"
)

func main() {
	os.Exit(2) // it was not started as one
}
