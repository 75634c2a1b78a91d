//go:build !linux

package job

import "os"

func interruptible(*os.File) {}
