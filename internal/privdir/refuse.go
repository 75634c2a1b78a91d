package privdir

import (
	"localmcp/internal/fault"
)

// The codes of this package's faults.
const (
	// Unsafe says that a directory or file is not as private as it must be.
	Unsafe fault.Code = "unsafe_path"
	// Unusable says that a directory or file could not be made, opened or read.
	Unusable fault.Code = "unusable_path"
	// Busy says that another process holds a lock.
	Busy fault.Code = "locked"
)

// At is the place a fault speaks of. It is the fault's cause: errors.As finds it, and
// only the owner may be shown it.
type At struct {
	Path string // absolute
	Err  error  // what the system said; may be nil
}

// Error names the place.
func (a *At) Error() string {
	if a.Err == nil {
		return "at " + a.Path
	}
	return "at " + a.Path + ": " + a.Err.Error()
}

// Place is the path, for a program's own command line.
func (a *At) Place() string { return a.Path }

// Unwrap returns what the system said.
func (a *At) Unwrap() error { return a.Err }
