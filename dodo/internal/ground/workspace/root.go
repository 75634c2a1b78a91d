package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Options are the owner's rules for a workspace. The zero value has the built-in ones.
type Options struct {
	// Hidden are absolute paths of directories that callers can neither reach nor see,
	// such as the installation's own.
	Hidden []string
	// SecretDeny and SecretAllow are patterns of git's ignore files, without regard to the
	// case of letters: what is secret beside the built-in list, and what is not after all.
	// A slash at the end makes no difference in them; what is in a secret directory stays
	// secret unless the directory is excepted.
	SecretDeny, SecretAllow []string
	// Exclude are patterns of git's ignore files for what listings and searches leave out
	// unless they are asked for it. They only add.
	Exclude []string
	// AllowUnsafe admits a root that is too broad: the file system's, a home, a mount point.
	AllowUnsafe bool
	// Home is the owner's home directory; empty when there is none.
	Home string
	// MaxFile is the size in bytes above which a file is not read whole; 0 means 8 MiB.
	MaxFile int64
}

const defaultMaxFile = 8 << 20

// Identity tells one directory from another of the same path.
type Identity struct{ Dev, Ino uint64 }

// Tree is an open workspace. It is safe for use by several goroutines until Close.
type Tree struct {
	root    *safefile.Root
	id      Identity
	maxFile int64
	guard   guard
	exclude *ignore.Rules
}

// broad are the names of directories directly below the file system's root that hold other
// people's things (spec dodo-behaviour 1.6).
var broad = []string{"users", "home", "volumes", "mnt", "media", "windows", "program files"}

// Open opens the directory at root, whose links are resolved once, here. A missing one gives
// NOT_FOUND; what is no directory, or is too broad to be a workspace, PATH_DENIED.
func Open(root string, o Options) (*Tree, error) {
	real, err := resolveRoot(root)
	if err != nil {
		return nil, err
	}
	if err := judgeRoot(real, o); err != nil {
		return nil, err
	}
	r, err := safefile.OpenRoot(real, safefile.RefuseLinks)
	if err != nil {
		return nil, rootFault(err)
	}
	st, err := r.Stat(".")
	if err != nil {
		r.Close()
		return nil, rootFault(err)
	}
	t := &Tree{root: r, id: Identity{st.Dev, st.Ino}, maxFile: o.MaxFile, exclude: excludeRules(o.Exclude)}
	if t.maxFile <= 0 {
		t.maxFile = defaultMaxFile
	}
	if t.guard, err = newGuard(real, o); err == nil {
		err = t.real()
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return t, nil
}

// real refuses a root of files that the kernel makes.
func (t *Tree) real() error {
	d, err := t.root.OpenDir(".")
	if err != nil {
		return rootFault(err)
	}
	defer d.Close()
	made, err := d.KernelMade()
	if err != nil {
		return rootFault(err)
	}
	if made {
		return kernelFault(Path{})
	}
	return nil
}

func resolveRoot(root string) (string, error) {
	abs, err := filepath.Abs(root)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", rootFault(err)
	}
	return abs, nil
}

func judgeRoot(real string, o Options) error {
	for _, h := range o.Hidden {
		if hidden := settle(h); real == hidden || strings.HasPrefix(real, hidden+"/") {
			return fault.New(contract.PathDenied, "the installation's own directory cannot be a workspace").
				WithHint("choose the directory of a project")
		}
	}
	if o.AllowUnsafe {
		return nil
	}
	refuse := func(why string) error {
		return fault.New(contract.PathDenied, "%s is too broad to be a workspace", why).
			WithHint("choose the directory of one project; only `dodo start --allow-unsafe-root` and `dodo stdio --allow-unsafe-root` serve such a one")
	}
	if real == "/" || filepath.Dir(real) == real {
		return refuse("the file system's root")
	}
	if o.Home != "" && sameDirectory(real, o.Home) {
		return refuse("the home directory")
	}
	if filepath.Dir(filepath.Dir(real)) == filepath.Dir(real) {
		for _, name := range broad {
			if strings.EqualFold(filepath.Base(real), name) {
				return refuse("a directory for the files of everyone")
			}
		}
	}
	return nil
}

func sameDirectory(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// settle resolves the links of the part of an absolute path that exists.
func settle(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(settle(dir), filepath.Base(path))
	}
	return path
}

func rootFault(err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(contract.NotFound, err, "the workspace's directory is not there").
			WithHint("check the path, or make the directory first")
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(contract.PathDenied, err, "the system does not let this user open the workspace's directory").
			WithHint("give the user read and search permission, or choose another directory")
	}
	return fault.Wrap(contract.PathDenied, err, "the workspace's path does not lead to a directory").
		WithHint("choose a directory")
}

// Root is the absolute path of the workspace, without links.
func (t *Tree) Root() string { return t.root.Path() }

// Identity is that of the directory that was opened.
func (t *Tree) Identity() Identity { return t.id }

// Close releases the descriptor.
func (t *Tree) Close() error { return t.root.Close() }

// Check reports whether the root's path still leads to the directory that was opened. What
// was moved away or replaced is refused: a caller would otherwise work on files that the
// owner no longer sees at that place.
func (t *Tree) Check() error {
	in, err := t.root.InPlace()
	if err == nil && in {
		return nil
	}
	return fault.Wrap(contract.PathDenied, err, "the workspace's directory was moved or replaced since it was opened").
		WithHint("the owner must open the workspace anew")
}
