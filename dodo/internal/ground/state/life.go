package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/privdir"
)

// A life is how other processes know that this one is there: a lock file that it holds.
// The lock ends with the process, however it ends; a process id would be taken by another.
type life struct {
	name string
	held *privdir.Held
}

// livesName is the directory of these files in the installation directory.
const livesName = "processes"

const lockSuffix = ".lock"

// me returns the name of this process, and takes it at the first call. What processes that
// are gone left behind is removed then.
func (s *Store) me(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.self != nil {
		return s.self.name, nil
	}
	dir := filepath.Join(s.dir, livesName)
	r, err := privdir.Create(dir, "the directory of running processes")
	if err != nil {
		return "", Fault(err)
	}
	defer r.Close()
	list, _, err := r.ReadDir(".")
	if err != nil {
		return "", Fault(err)
	}
	for _, e := range list {
		if name, ok := strings.CutSuffix(e.Name, lockSuffix); ok {
			if _, err := s.alive(name); err != nil {
				return "", err
			}
		}
	}
	name := contract.NewID("run", 20)
	held, err := privdir.Lock(ctx, filepath.Join(dir, name+lockSuffix))
	if err != nil {
		return "", Fault(err)
	}
	s.self = &life{name: name, held: held}
	return name, nil
}

// Process is the name of this process for rows that others must know to be its own. It is
// taken when it is first needed.
func (s *Store) Process(ctx context.Context) (string, error) { return s.me(ctx) }

// Lives reports whether the process of that name is still there.
func (s *Store) Lives(process string) (bool, error) { return s.alive(process) }

// alive reports whether the process of that name runs, and removes the file of one that
// does not.
func (s *Store) alive(name string) (bool, error) {
	path := filepath.Join(s.dir, livesName, name+lockSuffix)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	held, err := privdir.TryLock(path)
	if errors.Is(err, privdir.Busy) {
		return true, nil
	}
	if err != nil {
		return false, Fault(err)
	}
	return false, errors.Join(os.Remove(path), held.Unlock())
}

// leave gives the name back.
func (s *Store) leave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.self == nil {
		return nil
	}
	path := filepath.Join(s.dir, livesName, s.self.name+lockSuffix)
	err := errors.Join(os.Remove(path), s.self.held.Unlock())
	s.self = nil
	return err
}
