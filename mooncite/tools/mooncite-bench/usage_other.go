//go:build !linux

package main

import "os"

// maxRSS is unknown here: mooncite runs on Linux only.
func maxRSS(*os.ProcessState) int64 { return 0 }
