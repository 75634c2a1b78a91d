package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// Info is what is known of an entry without reading it.
type Info struct {
	Type    safefile.Type
	Size    int64       // bytes
	Mode    fs.FileMode // permission bits alone
	MtimeNS int64       // last change of content, nanoseconds since 1970 UTC
	CtimeNS int64       // last change of content or metadata
	Dev     uint64
	Ino     uint64
	Nlink   uint64
	UID     uint32
	GID     uint32
}

func infoOf(in safefile.Info) Info {
	return Info{
		Type: in.Type, Size: in.Size, Mode: fs.FileMode(in.Mode & 0o777),
		MtimeNS: in.MtimeNS, CtimeNS: in.CtimeNS, Dev: in.Dev, Ino: in.Ino, Nlink: in.Hard, UID: in.UID, GID: in.GID,
	}
}

// Same reports whether both tell of one state of one file.
func (i Info) Same(o Info) bool { return i == o }

// File is an open regular file of a workspace. Info is what it was when it was opened.
type File struct {
	*os.File
	Info Info
}

// Open opens a regular file that has one name. Anything else gives PATH_DENIED without
// being opened, a missing one NOT_FOUND. One that is replaced again and again gives FILE_CHANGED.
func (t *Tree) Open(p Path) (f *File, err error) {
	for range coherentTries {
		if f, err = t.open(p); !errors.Is(err, contract.FileChanged) {
			break
		}
	}
	return f, err
}

func (t *Tree) open(p Path) (*File, error) {
	dir, name, err := t.place(p)
	if err != nil {
		return nil, err
	}
	if dir != t.root {
		defer dir.Close()
	}
	in, err := dir.Stat(name)
	if err != nil {
		return nil, t.lookup(p, err)
	}
	if err := t.regular(p, in); err != nil {
		return nil, err
	}
	f, _, err := dir.Open(name)
	if err != nil {
		return nil, t.lookup(p, err)
	}
	if in, err = safefile.StatFile(f); err != nil {
		f.Close()
		return nil, t.lookup(p, err)
	}
	return t.admit(p, f, in)
}

// admit judges a file that was opened, and closes one that is refused.
func (t *Tree) admit(p Path, f *os.File, in safefile.Info) (*File, error) {
	err := t.regular(p, in)
	if err == nil && in.Dev != t.id.Dev {
		var made bool
		if made, err = safefile.KernelMade(f); err != nil {
			err = t.lookup(p, err)
		} else if made {
			err = kernelFault(p)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{File: f, Info: infoOf(in)}, nil
}

func kernelFault(p Path) error {
	return fault.New(contract.PathDenied, "the files there are made by the kernel").
		WithHint("file tools reach ordinary files only").With("path", p.Shown())
}

// Stat tells about an entry. A link gives PATH_DENIED, a missing entry NOT_FOUND.
func (t *Tree) Stat(p Path) (Info, error) {
	dir, name, err := t.place(p)
	if err != nil {
		return Info{}, err
	}
	if dir != t.root {
		defer dir.Close()
	}
	in, err := dir.Stat(name)
	if err != nil {
		return Info{}, t.lookup(p, err)
	}
	if in.Type == safefile.Link {
		return Info{}, linkFault(p)
	}
	return infoOf(in), nil
}

// place opens the directory an entry is in. The root is its own place.
func (t *Tree) place(p Path) (*safefile.Root, string, error) {
	if err := t.Access(p); err != nil {
		return nil, "", err
	}
	if err := t.Check(); err != nil {
		return nil, "", err
	}
	if p.IsRoot() {
		return t.root, ".", nil
	}
	parent := p.Parent()
	if parent.IsRoot() {
		return t.root, p.Base(), nil
	}
	dir, err := t.root.Sub(parent.rel)
	if err != nil {
		return nil, "", t.lookup(p, err)
	}
	return dir, p.Base(), nil
}

// openDir opens a directory for listing.
func (t *Tree) openDir(p Path) (*safefile.Dir, error) {
	if err := t.Access(p); err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	d, err := t.root.OpenDir(p.String())
	if err != nil {
		return nil, t.lookup(p, err)
	}
	if t.foreign(d) {
		d.Close()
		return nil, kernelFault(p)
	}
	return d, nil
}

// foreign reports whether a directory is one of files that the kernel makes. It may be a
// mount in the workspace.
func (t *Tree) foreign(d *safefile.Dir) bool {
	in, err := d.Self()
	if err != nil || in.Dev == t.id.Dev {
		return err != nil
	}
	made, err := d.KernelMade()
	return made || err != nil
}

// regular judges what an entry is.
func (t *Tree) regular(p Path, in safefile.Info) error {
	deny := func(what, hint string) error {
		return fault.New(contract.PathDenied, "this is %s, not a regular file", what).
			WithHint("%s", hint).With("path", p.Shown())
	}
	switch {
	case in.Type == safefile.Link:
		return linkFault(p)
	case in.Type == safefile.Directory:
		return deny("a directory", "list it with list_files, or name a file in it")
	case in.Type != safefile.Regular:
		return deny("a FIFO, a socket or a device", "file tools reach regular files only")
	case in.Hard == 0:
		return replacedFault(p, nil)
	case in.Hard != 1:
		return fault.New(contract.PathDenied, "this file has %d names (hard links), and one may be outside the workspace", in.Hard).
			WithHint("the owner can copy it to a file of its own").With("path", p.Shown())
	}
	return nil
}

func linkFault(p Path) error {
	return fault.New(contract.PathDenied, "the path goes through a symbolic link, which file tools never follow").
		WithHint("name the place the link points to, if it is in the workspace").With("path", p.Shown())
}

// lookup gives the fault for a path that could not be opened.
func (t *Tree) lookup(p Path, err error) error {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return fault.Wrap(contract.NotFound, err, "nothing is there by that name").
			WithHint("list the directory with list_files to see what is there").With("path", p.Shown())
	case errors.Is(err, safefile.ErrNotDirectory), errors.Is(err, safefile.ErrNotRegular):
		return t.onTheWay(p, err)
	}
	if p.IsRoot() && errors.Is(err, fs.ErrPermission) {
		return fault.Wrap(contract.PathDenied, err, "the system does not let this user list or search the workspace's own directory").
			WithHint("the owner gives the permissions back, such as with chmod u+rwx on the directory that is the workspace")
	}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			f := fault.Wrap(k.code, err, "%s", k.msg).WithHint("%s", k.hint).With("path", p.Shown())
			f.Retryable = k.retry
			return f
		}
	}
	return fault.Wrap(contract.InternalError, err, "the file system answered with an error").
		WithHint("try again; if it stays, the owner should look at the disk").With("path", p.Shown()).Retry()
}

// kinds are what a file system may answer, beside that something is not there.
var kinds = []struct {
	is        error
	code      fault.Code
	msg, hint string
	retry     bool
}{
	{fs.ErrPermission, contract.PathDenied, "the system does not let this user do that there", "the owner can change the permissions", false},
	{syscall.ENAMETOOLONG, contract.PathDenied, "a name in the path is longer than the file system takes", "names have at most 255 bytes", false},
	{syscall.EROFS, contract.PathDenied, "the file system can only be read", "the owner can mount it for writing", false},
	{syscall.ENOSPC, contract.ResourceLimit, "the disk is full", "free some space; nothing was lost", true},
	{syscall.EDQUOT, contract.ResourceLimit, "the quota of this user is used up", "free some space; nothing was lost", true},
	{syscall.EFBIG, contract.ResourceLimit, "the file is larger than this process or file system may write", "write less", false},
	{syscall.EMFILE, contract.ResourceLimit, "too many files are open", "try again in a moment", true},
	{syscall.ENFILE, contract.ResourceLimit, "too many files are open", "try again in a moment", true},
	{syscall.ENOTEMPTY, contract.Conflict, "the directory is not empty", "remove what is in it first", false},
	{syscall.EISDIR, contract.PathDenied, "this is a directory, not a file", "name a file", false},
	{syscall.ENOTDIR, contract.PathDenied, "this is not a directory", "check the path with list_files", false},
	{syscall.EBUSY, contract.Conflict, "the system is using this entry", "it may be a mount; choose another", false},
	{syscall.EXDEV, contract.NotSupported, "the two places are on different file systems", "write the file anew and delete the old one", false},
	{errors.ErrUnsupported, contract.NotSupported, "the file system cannot do that in one step", "the owner can keep the workspace on a local file system", false},
}

// onTheWay says which component of a path is not what it must be.
func (t *Tree) onTheWay(p Path, cause error) error {
	for end := 0; end < len(p.rel); end++ {
		if p.rel[end] != '/' {
			continue
		}
		in, err := t.root.Stat(p.rel[:end])
		switch {
		case err == nil && in.Type == safefile.Directory:
			continue
		case err == nil && in.Type != safefile.Link:
			return notDirectory(Path{p.rel[:end]}, cause)
		}
		return linkFault(Path{p.rel[:end]})
	}
	in, err := t.root.Stat(p.String())
	switch {
	case err != nil || in.Type == safefile.Link:
		return linkFault(p)
	case errors.Is(cause, safefile.ErrNotDirectory):
		return notDirectory(p, cause)
	}
	if err := t.regular(p, in); err != nil {
		return err
	}
	return replacedFault(p, cause)
}

func replacedFault(p Path, cause error) error {
	return fault.Wrap(contract.FileChanged, cause, "it became another file while it was opened").
		WithHint("try again").With("path", p.Shown()).Retry()
}

func notDirectory(p Path, cause error) error {
	return fault.Wrap(contract.PathDenied, cause, "this is not a directory").
		WithHint("check the path with list_files").With("path", p.Shown())
}
