//go:build dodo_probe

package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// clockOf is the machine's clock, and what the file probe-clock of the installation says it
// is ahead (such as 11m). Programs that people use are built without it: tests let time pass
// with it.
func clockOf(dir string) func() time.Time {
	return func() time.Time {
		text, _ := os.ReadFile(filepath.Join(dir, "probe-clock")) // none: it is not ahead
		ahead, _ := time.ParseDuration(strings.TrimSpace(string(text)))
		return time.Now().Add(ahead)
	}
}
