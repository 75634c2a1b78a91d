package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/evidence"
)

// files are the names that learned memory uses in the state directory, besides its
// lock, which stays: it must not be another file for another process.
func files() []string {
	return []string{databaseName, databaseName + "-wal", databaseName + "-shm", databaseName + "-journal"}
}

// Present names the files of learned memory that are in a state directory.
func Present(stateDir string) ([]string, error) {
	var out []string
	for _, name := range files() {
		_, err := os.Lstat(filepath.Join(stateDir, name))
		switch {
		case err == nil:
			out = append(out, name)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fault.Wrap(evidence.CodeState, err, "the state directory cannot be read").WithHint("look at its permissions")
		}
	}
	return out, nil
}

// Purge removes the database for good, whatever state it is in. It is refused while any
// process has it open, and where one of its names is not a private file of the user's.
func Purge(stateDir string) error {
	if present, err := Present(stateDir); err != nil || len(present) == 0 {
		return err
	}
	dir, err := privdir.Open(stateDir, stateWhat)
	if err != nil {
		return err
	}
	defer dir.Close()
	// SQLite must not be left with a file that has lost its name: closing it would
	// remove the log of the next one.
	held, err := privdir.TryLock(filepath.Join(stateDir, lockName))
	if errors.Is(err, privdir.Busy) {
		return fault.Wrap(privdir.Busy, err, "a running client uses learned memory").WithHint("end the clients that use mooncite and try again")
	}
	if err != nil {
		return err
	}
	defer held.Unlock()
	present, err := Present(stateDir)
	if err != nil {
		return err
	}
	for _, name := range present {
		if err := privdir.CheckFile(dir, name, "a file of learned memory"); err != nil {
			return err
		}
	}
	for _, name := range present {
		if err := os.Remove(filepath.Join(stateDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(evidence.CodeState, err, "a file of learned memory cannot be removed").WithHint("look at the permissions of the state directory")
		}
	}
	return nil
}
