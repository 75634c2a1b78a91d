//go:build !dodo_probe

package main

import "time"

// clockOf is what an installation goes by; nil is the machine's clock.
func clockOf(string) func() time.Time { return nil }
