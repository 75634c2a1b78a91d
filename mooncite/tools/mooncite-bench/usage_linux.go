package main

import (
	"os"
	"syscall"
)

// maxRSS is the peak resident size that wait4 reported, in bytes.
func maxRSS(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}
