package sandbox

import (
	"context"
	"sync"
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
	o Options

	mu     sync.Mutex // guards report
	report *Report    // nil: not probed yet
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
	Cgroup  bool                 // memory and processes of a whole job are bounded too
}

// A Place is a workspace as commands have it.
type Place struct {
	box   *Box
	Root  string // its absolute path
	Cache string // a private directory that is the home of its commands' caches
	// Secrets gives the absolute paths in it that no command may read, files and
	// directories, without what is below one of them.
	Secrets func(ctx context.Context) ([]string, error)
}

// Place gives a workspace to run commands in. The cache directory is made when it is needed.
func (b *Box) Place(root, cache string, secrets func(context.Context) ([]string, error)) *Place {
	return &Place{box: b, Root: root, Cache: cache, Secrets: secrets}
}
