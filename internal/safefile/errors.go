package safefile

import (
	"errors"

	"localmcp/internal/fault"
)

// NotSupported is the code of everything this package has no adapter for on the
// running system.
const NotSupported fault.Code = "NOT_SUPPORTED"

var (
	// ErrNotRegular says that a name is not that of a regular file.
	ErrNotRegular = errors.New("not a regular file")
	// ErrNotDirectory says that a name is not that of a directory.
	ErrNotDirectory = errors.New("not a directory")
	// ErrName says that a relative name is empty, absolute, or has an empty, "." or
	// ".." component or a NUL byte.
	ErrName = errors.New("not a plain relative name")
)

// LinkError says that a path has a symbolic link where none is allowed. Path is the
// link itself, for the owner's eyes only: it is not part of the text.
type LinkError struct{ Path string }

// Error says so without naming the path.
func (e *LinkError) Error() string { return "a component of the path is a symbolic link" }

// Links says what [OpenRoot] does about symbolic links in the path it is given.
type Links uint8

// RefuseLinks refuses a link in any component, the last one too. FollowLinks
// follows them: for directories whose path the user chose and others cannot change.
const (
	RefuseLinks Links = iota
	FollowLinks
)
