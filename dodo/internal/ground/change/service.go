package change

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// A Finder finds the files that may hold a text; replace_in_files asks it. literal has no line
// break. paths narrow it to these files and directories, glob to names; ignored takes in what
// the ignore rules leave out. It returns at most max paths.
type Finder interface {
	Find(ctx context.Context, literal string, paths []workspace.Path, glob string, ignored bool, max int) ([]workspace.Path, error)
}

// Config is what a Service stands on.
type Config struct {
	Tree        *workspace.Tree
	State       *state.Store
	WorkspaceID string
	Epoch       string
	Limits      contract.Limits
	// Find is nil where nothing can be searched; replace_in_files is then refused.
	Find Finder
	// Asks says whether the owner is asked before a change of this principal; nil means never.
	Asks func(ctx context.Context, p contract.Principal) (bool, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service changes the files of one workspace. It is safe for use by several goroutines;
// several processes may each have one for the same workspace.
type Service struct {
	Config
	journal journal
	backups *backups
	plans   *plans
	umask   fs.FileMode
	turn    string // path of the lock between processes

	mu     sync.Mutex      // guards what follows
	swept  map[string]bool // changesets whose stages this process removed, not noted in the journal yet
	upkeep time.Time       // when what is old was last pruned

	fail func(point string) error // tests make a step fail here; nil otherwise
}

// The names in the installation directory.
const (
	turnsName  = "turns"
	lockSuffix = ".lock"
)

// New makes the service of a workspace. It touches no file of the workspace: see
// [Service.Reconcile].
func New(c Config) (*Service, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	packer, err := newPacker()
	if err != nil {
		return nil, err
	}
	s := &Service{Config: c, umask: safefile.Umask(), swept: map[string]bool{}}
	s.journal = journal{store: c.State, workspace: c.WorkspaceID, now: c.Now}
	turns := filepath.Join(c.State.Dir(), turnsName)
	dir, err := privdir.Create(turns, "the directory of locks")
	if err != nil {
		return nil, state.Fault(err)
	}
	dir.Close()
	s.turn = filepath.Join(turns, c.WorkspaceID+lockSuffix)
	if s.backups, err = openBackups(c.State, packer, c.Now); err != nil {
		return nil, err
	}
	if s.plans, err = openPlans(c.State, packer, c.Now); err != nil {
		return nil, errors.Join(err, s.backups.dir.Close())
	}
	return s, nil
}

// Close ends the use of the service. The tree and the state are the caller's, and open still:
// what was swept is noted, so that the next start has nothing to look at.
func (s *Service) Close() error {
	s.mu.Lock()
	swept := slices.Collect(maps.Keys(s.swept))
	s.mu.Unlock()
	return errors.Join(s.journal.markSwept(context.Background(), swept), s.backups.dir.Close(), s.plans.dir.Close())
}

// at is where tests make things fail.
func (s *Service) at(point string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(point)
}
