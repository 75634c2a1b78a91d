package sandbox

import (
	"context"
	"os"
	"sync"

	"localmcp/dodo/internal/ground/walls"
)

// Options are what a Box is made from.
type Options struct {
	// Path is where programs are looked for: absolute directories. Their toolchains can be
	// read by commands.
	Path []string
	// Hidden are directories that no command may see, such as the installation's own.
	Hidden []string
	// Read are more directories that commands may read, by the owner's configuration.
	Read []string
	// Home is the owner's home directory, of which commands see nothing.
	Home string
	// Helper is the program whose main calls [Helper]; empty is the running one.
	Helper string
}

// A Box is what this machine can do. It is safe for use by several goroutines.
type Box struct {
	o    Options
	only Isolation // the one level there is, for tests; see weak_linux.go

	mu     sync.Mutex // guards report
	report *Report    // nil: not probed yet
	groups string     // where groups can be made; empty: nowhere
}

// New makes a Box. Nothing is tried yet.
func New(o Options) *Box {
	if o.Helper == "" {
		o.Helper = "/proc/self/exe"
	}
	return &Box{o: o}
}

// Report is what this machine can do.
type Report struct {
	Best    Isolation            // of what was tried; None when nothing works
	Reasons map[Isolation]string // why a level cannot be had
	Root    bool                 // the server is root
	// Ungrouped says why the memory and the number of processes of a whole command are not
	// bounded, only those of each process; empty where they are.
	Ungrouped string
	// Landlock is the version of it that the kernel has; 0 is none.
	Landlock int
}

// A Place is a workspace as commands have it.
type Place struct {
	box   *Box
	root  string
	cache string
	kept  func(context.Context) (Kept, error)

	mu   sync.Mutex                // guards held
	held map[*walls.Cover]*os.File // what is hidden from the commands that run
}

// Kept is what a workspace keeps from commands, by absolute paths.
type Kept struct {
	Secrets []string // look empty to them
	Git     []string // what git keeps for itself, which they must not turn against others
	Fixed   []string // directories they cannot move: their names make paths below them secret
	Closed  []string // directories that could not be looked through: they look empty

	beyond []string // git directories that are too many to be guarded: they look empty
}

// Place gives the workspace at a root to run commands in. cache is a private directory that
// is the home of its commands and lasts; it is made when it is needed. kept is asked at
// every start; nil is a workspace that keeps nothing.
func (b *Box) Place(root, cache string, kept func(context.Context) (Kept, error)) *Place {
	return &Place{box: b, root: root, cache: cache, kept: kept}
}

// Root is the workspace's absolute path.
func (p *Place) Root() string { return p.root }
