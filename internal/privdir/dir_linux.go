package privdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Create makes the directory at an absolute path, and what is missing above it, with
// mode 0700 and then does as [Open].
func Create(path, what string, marks ...string) (*safefile.Root, error) {
	r, err := Open(path, what, marks...) // a link above what is missing is refused before anything is made
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, unusable(path, what, err)
	}
	return Open(path, what, marks...)
}

// Open opens a private directory by its absolute path. what names it in sentences,
// such as "the state directory". It is refused with [Unsafe] when the path has a
// symbolic link, when it is not the user's, when its mode gives anyone else a right,
// or when a directory above lets another user swap it (a sticky one, as /tmp, does
// not); with [Unusable] when it cannot be opened (fs.ErrNotExist when missing).
//
// marks are names of files by which the program knows a directory as its own. With them,
// nobody is told to close one that holds other things, such as the home or "/".
func Open(path, what string, marks ...string) (*safefile.Root, error) {
	j := newJudge(what)
	j.marks = marks
	return j.open(path, j.private)
}

// open opens a directory and judges it and all above it.
func (j judge) open(path string, own func(*safefile.Root, step) error) (*safefile.Root, error) {
	r, err := safefile.OpenRoot(path, safefile.RefuseLinks)
	if err != nil {
		return nil, refusal(path, j.what, err)
	}
	chain, err := climb(path)
	if err == nil {
		err = same(r, chain)
	}
	if err != nil {
		r.Close()
		return nil, refusal(path, j.what, err)
	}
	last := len(chain) - 1
	err = j.above(chain[:last])
	if err == nil {
		err = own(r, chain[last])
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// OpenConfig opens a configuration directory by its absolute path; links on the way
// are followed, as dotfile managers make them. It is refused with [Unsafe] only when
// another user could change it or a directory above it; readable by others, or
// writable by the user's own group, is fine. A missing one gives fs.ErrNotExist.
func OpenConfig(path, what string) (*safefile.Root, error) {
	j := newJudge(what)
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, unusable(path, what, err)
	}
	return j.open(end, func(_ *safefile.Root, s step) error { return j.config(s) })
}

// A step is one directory of a path.
type step struct {
	path string
	info safefile.Info
}

// climb tells about every directory from "/" to path, following no link.
func climb(path string) ([]step, error) {
	r, err := safefile.OpenRoot("/", safefile.RefuseLinks)
	if err != nil {
		return nil, err
	}
	defer func() { r.Close() }()
	st, err := r.Stat(".")
	if err != nil {
		return nil, err
	}
	chain := []step{{"/", st}}
	for rest := path[1:]; rest != ""; {
		var part string
		part, rest = firstPart(rest)
		next, err := r.Sub(part)
		if err != nil {
			return nil, err
		}
		r.Close()
		r = next
		if st, err = r.Stat("."); err != nil {
			return nil, err
		}
		chain = append(chain, step{r.Path(), st})
	}
	return chain, nil
}

func firstPart(rel string) (part, rest string) {
	for i := range len(rel) {
		if rel[i] == '/' {
			return rel[:i], rel[i+1:]
		}
	}
	return rel, ""
}

var errReplaced = errors.New("the directory was replaced while it was opened")

// same makes sure that what was judged is what was opened.
func same(r *safefile.Root, chain []step) error {
	st, err := r.Stat(".")
	if err != nil {
		return err
	}
	if !st.SameFile(chain[len(chain)-1].info.Identity) {
		return errReplaced
	}
	return nil
}

// refusal is the fault for a path that could not be opened.
func refusal(path, what string, err error) error {
	var link *safefile.LinkError
	if errors.As(err, &link) {
		return fault.Wrap(Unsafe, &At{Path: link.Path, Err: err}, "the path of %s has a symbolic link", what).
			WithHint("give its real path instead")
	}
	return unusable(path, what, err)
}

func unusable(path, what string, err error) error {
	return fault.Wrap(Unusable, &At{Path: path, Err: err}, "%s cannot be used: %s", what, plainly(err)).
		WithHint("%s", remedy(err))
}

// remedy says what the owner can do about what the system said.
func remedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "make it, or correct its path"
	case errors.Is(err, fs.ErrPermission):
		return "give yourself permission for it and for the directories above it"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "free some space and try again"
	}
	return "correct its path, or choose another place"
}

// plainly says what the system said, without a path.
func plainly(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	case errors.Is(err, safefile.ErrNotDirectory), errors.Is(err, unix.ENOTDIR):
		return "something on its path is not a directory"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "the disk is full"
	case errors.Is(err, unix.EROFS):
		return "the file system is read-only"
	case errors.Is(err, safefile.ErrName):
		return "its path is not absolute and plain"
	case errors.Is(err, errReplaced):
		return "it changed while it was opened"
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return "its path leads nowhere, perhaps through a loop of links"
}
