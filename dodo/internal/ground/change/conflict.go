package change

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// A conflict is why a change cannot be made to one path.
type conflict struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`

	expected, actual string // hashes, where both are known
}

// The reasons.
const (
	changedReason = "its content is not what the change was made for"
	missingReason = "it is not there any more"
	takenReason   = "something is there already"
	parentReason  = "its directory is not there"
	writerReason  = "another program has it open for writing"
	modeReason    = "its permissions were changed meanwhile"
	backupReason  = "what was there before is not kept any more"
	unclearReason = "it is neither as before the change nor as after it"
	stageReason   = "its new content is not there any more"
	deniedReason  = "it is not a plain file that file tools reach"
)

// maxConflicts is how many are named.
const maxConflicts = 20

// conflictError is what stops a change. It becomes a fault where it is known what the change
// was: an apply says FILE_CHANGED, a rollback CONFLICT.
type conflictError struct{ list []conflict }

func (e *conflictError) Error() string { return "a file is not as the change needs it" }

func stop(path, reason string) error { return &conflictError{[]conflict{{Path: path, Reason: reason}}} }

func (e *conflictError) fault(code fault.Code, hint string) *fault.Error {
	msg := "a file is not as it was when the change was made ready"
	if len(e.list) > 1 {
		msg = "some files are not as they were when the change was made ready"
	}
	if !slices.ContainsFunc(e.list, func(c conflict) bool { return c.Reason != backupReason }) {
		msg, hint = "what was there before is not kept any more, or was lost", "it cannot be taken back; change the files by hand"
	}
	f := fault.New(code, "%s; nothing was changed", msg).WithHint("%s", hint).With("conflicts", e.list[:min(len(e.list), maxConflicts)])
	if c := e.list[0]; len(e.list) == 1 && c.actual != "" {
		f = f.With("path", c.Path).With("expectedHash", c.expected).With("actualHash", c.actual)
	}
	return f
}

// A Conflict is a path and why a change could not be made to it.
type Conflict struct{ Path, Reason string }

// Conflicts are the paths that an error of this package is about, as far as it names them.
func Conflicts(err error) (all []Conflict) {
	if f := fault.From(err); f != nil {
		list, _ := f.Detail["conflicts"].([]conflict)
		for _, c := range list {
			all = append(all, Conflict{c.Path, c.Reason})
		}
	}
	return all
}

// changed is the fault of a change that met other files than it was made for.
func (e *conflictError) changed() *fault.Error {
	return e.fault(contract.FileChanged, "read the files again and make the change for what is there now").Retry()
}

// plain gives an error of the file system its code where the packages below cannot: a full
// disk, and what a file system is not able to do.
func plain(err error) error {
	var c *conflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &c):
		return c.changed()
	case noRoom(err):
		return fault.Wrap(contract.ResourceLimit, err, "there is no room left on the disk; nothing was changed").
			WithHint("free some space and try again").Retry()
	case errors.Is(err, errors.ErrUnsupported):
		return fault.Wrap(contract.NotSupported, err, "the file system of this workspace cannot swap two files in one step, so changing a file there would not be safe").
			WithHint("put the workspace on a local file system of Linux")
	case errors.Is(err, syscall.EXDEV):
		return fault.Wrap(contract.NotSupported, err, "the two places are on different file systems").
			WithHint("make a new file there and delete the old one")
	case errors.Is(err, syscall.EROFS):
		return fault.Wrap(contract.PathDenied, err, "the file system of this workspace is read-only").
			WithHint("the owner can mount it for writing")
	}
	return state.Fault(err)
}

func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) || errors.Is(err, sqlitedb.Full)
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
