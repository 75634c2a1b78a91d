package engine

import (
	"fmt"
	"runtime/debug"
)

// contained calls f and turns a panic into an error: in a goroutine of the engine's own
// it would end the program.
func contained(doing string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while %s: %v\n%s", doing, p, debug.Stack())
		}
	}()
	return f()
}
