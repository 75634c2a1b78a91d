package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
	"localmcp/internal/safefile"
)

// repo is where a repository is. All paths are absolute and without links.
type repo struct {
	top    string // the work tree
	prefix string // of the workspace in it: empty, or with a slash at the end
	dir    string // its git directory
	common string // what it shares with linked work trees; dir where it has none

	read, write []string // what git must see outside of the workspace
}

// The bounds of what is read here.
const (
	maxPointer = 64 << 10
	maxConfig  = 1 << 20
	maxAbove   = 64 // directories
)

// find looks for the repository that the workspace is in: its own, or one above. Nil without
// an error says that there is none. It is found here and not by git, so that git is always
// told where it works: what a repository says about that has no effect.
func (s *Service) find(ctx context.Context) (*repo, error) {
	root := s.Tree.Root()
	at := root
	for range maxAbove {
		r, err := s.lookIn(ctx, root, at)
		if err != nil || r != nil {
			return r, err
		}
		if filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	return nil, nil
}

// lookIn looks in one directory.
func (s *Service) lookIn(ctx context.Context, root, at string) (*repo, error) {
	name := filepath.Join(at, ".git")
	st, err := os.Lstat(name)
	if errors.Is(err, fs.ErrPermission) && at == root {
		return nil, fault.Wrap(contract.PathDenied, err, "the permissions of the workspace's own directory keep the server out").WithHint("the owner gives them back, such as with chmod u+rwx on it")
	}
	if err != nil {
		return nil, nil // what cannot be seen is not there, as for git
	}
	r := &repo{top: at, dir: name}
	if at != root {
		rel, err := filepath.Rel(at, root)
		if err != nil {
			return nil, err
		}
		r.prefix = filepath.ToSlash(rel) + "/"
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		return nil, refused("is a link", "the owner can put a file there instead, with the line gitdir: PATH")
	case st.IsDir():
	case st.Mode().IsRegular():
		if r.dir, err = pointed(at); err != nil {
			return nil, err
		}
	default:
		return nil, refused("is neither a directory nor a file", "the owner can remove it")
	}
	d, err := openGit(r.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && st.IsDir():
		return nil, nil // an empty .git is no repository; git looks further up, too
	case err != nil:
		return nil, gitFault(err)
	}
	defer d.close()
	if r.common, err = d.common(r.dir); err != nil {
		return nil, err
	}
	if err := s.admit(ctx, r, d, root, !st.IsDir()); err != nil {
		return nil, err
	}
	return r, r.alternates(root)
}

// refused is the fault of a .git that is not used.
func refused(why, hint string) error {
	return fault.New(contract.PathDenied, "the .git of this workspace %s", why).WithHint("%s", hint)
}

func gitFault(err error) error {
	var f *fault.Error
	var link *safefile.LinkError
	switch {
	case errors.As(err, &f):
		return err
	case errors.As(err, &link):
		return refused("leads through a link", "the owner can name the place itself")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, safefile.ErrNotDirectory), errors.Is(err, safefile.ErrNotRegular):
		return refused("names no git directory", "the owner can mend it: git worktree repair, or git submodule update --init")
	case errors.Is(err, fs.ErrPermission):
		return refused("cannot be read by this user", "the owner can change its permissions")
	}
	return err
}

// pointed follows the file .git of a linked work tree or a submodule.
func pointed(at string) (string, error) {
	d, err := openDirectory(at)
	if err != nil {
		return "", gitFault(err)
	}
	defer d.close()
	line, err := d.load(".git", maxPointer)
	if err != nil {
		return "", gitFault(err)
	}
	target, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), "gitdir: ")
	if !ok || target == "" || strings.ContainsAny(target, "\n\x00") {
		return "", refused("is a file of another kind", "the owner can remove it")
	}
	return resolve(at, target)
}

// resolve gives the place that a file of git names, relative to dir, without links.
func resolve(dir, target string) (string, error) {
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	real, err := filepath.EvalSymlinks(target)
	if err != nil {
		return "", gitFault(err)
	}
	return filepath.Abs(real)
}

// admit decides whether a git directory outside of the workspace may be used. A command in the
// sandbox can write a pointer to any place, and with it have another repository shown; it
// cannot write what is there. So the place must name this work tree itself, as git sees to for
// linked work trees and submodules, or be the .git of a directory that the workspace is in.
func (s *Service) admit(ctx context.Context, r *repo, d *gitDir, root string, pointer bool) error {
	foreign := "the owner can work in the main work tree, or register this one: git worktree repair"
	linked := r.common != r.dir
	if linked && filepath.Dir(r.dir) != filepath.Join(r.common, "worktrees") {
		return refused("belongs to no work tree of the repository that it names", foreign)
	}
	if r.prefix == "" && inside(root, r.dir) && inside(root, r.common) {
		return nil
	}
	for _, hidden := range s.Hidden {
		if inside(hidden, r.common) || inside(hidden, r.dir) {
			return refused("leads into dodo's own directory", foreign)
		}
	}
	c := d
	if linked {
		var err error
		if c, err = openGit(r.common); err != nil {
			return gitFault(err)
		}
		defer c.close()
	}
	if !d.own() || !c.own() {
		return refused("leads to a directory of another user", "the owner can change who it belongs to")
	}
	switch {
	case linked:
		back, err := d.load("gitdir", maxPointer)
		if err != nil {
			return gitFault(err)
		}
		named := strings.TrimRight(string(back), "\r\n")
		if named, err = resolve(r.dir, filepath.Dir(named)); err != nil || named != r.top {
			return refused("names a repository that does not know this work tree", foreign)
		}
	case pointer:
		back, err := s.workTree(ctx, d)
		if err != nil {
			return err
		}
		if named, err := resolve(r.dir, back); back == "" || err != nil || named != r.top {
			return refused("names a repository that does not know this work tree", foreign)
		}
	}
	if !inside(root, r.common) {
		r.read, r.write = append(r.read, r.common), append(r.write, r.common)
	}
	r.read = append(r.read, rulesAbove(r.top, root)...)
	return nil
}

// rulesAbove are the files above the workspace that say what git ignores and how it takes the
// files in it.
func rulesAbove(top, root string) (list []string) {
	for dir := root; dir != top; {
		dir = filepath.Dir(dir)
		for _, name := range []string{".gitignore", ".gitattributes"} {
			if st, err := os.Lstat(filepath.Join(dir, name)); err == nil && st.Mode().IsRegular() {
				list = append(list, filepath.Join(dir, name))
			}
		}
	}
	return list
}

// workTree is core.worktree in a git directory's own configuration, read as data.
func (s *Service) workTree(ctx context.Context, d *gitDir) (string, error) {
	data, err := d.load("config", maxConfig)
	if err != nil {
		return "", gitFault(err)
	}
	list, err := s.parse(ctx, data)
	return list.get("core.worktree"), err
}

// parse has git read a configuration as data: what it includes is not read.
func (s *Service) parse(ctx context.Context, data []byte) (settings, error) {
	run, err := s.runner(ctx, nil)
	if err != nil {
		return nil, err
	}
	out, err := run.run(ctx, call{args: []string{"config", "--file", "-", "--no-includes", "--list", "-z"}, in: data})
	return parseSettings(out.bytes), err
}

// alternates refuses a repository that keeps objects where git in the sandbox cannot see them:
// it would only say that they are missing.
func (r *repo) alternates(root string) error {
	d, err := openDirectory(filepath.Join(r.common, "objects"))
	if err != nil {
		return gitFault(err)
	}
	defer d.close()
	info, err := d.dir.Sub("info")
	if err != nil {
		return nil // most repositories have none
	}
	defer info.Close()
	data, _, more, err := info.Load("alternates", nil, maxPointer)
	if err != nil || more {
		return nil // the same
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		place := line
		if !filepath.IsAbs(place) {
			place = filepath.Join(r.common, "objects", place)
		}
		if place = filepath.Clean(place); !inside(root, place) && !inside(r.common, place) {
			return fault.New(contract.NotSupported, "the repository borrows objects from another one, outside of the workspace").
				WithHint("the owner can copy them here: git repack -a -d, then remove objects/info/alternates")
		}
	}
	return nil
}

// inside reports whether a path is dir or below it.
func inside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// gitDir is a directory of git's, open: what is done in it is done there, wherever its path
// leads by then.
type gitDir struct {
	dir *safefile.Dir
}

// openDirectory opens a directory whose path has no link.
func openDirectory(path string) (*gitDir, error) {
	root, err := safefile.OpenRoot(path, safefile.RefuseLinks)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	d, err := root.OpenDir(".")
	if err != nil {
		return nil, err
	}
	return &gitDir{d}, nil
}

// openGit opens a git directory; fs.ErrNotExist says that it is none.
func openGit(path string) (*gitDir, error) {
	d, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	_, err = d.dir.Stat("HEAD")
	if err == nil && !d.has("commondir") {
		_, err = d.dir.Stat("objects")
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *gitDir) close() { _ = d.dir.Close() }

// has reports whether there is something by a name.
func (d *gitDir) has(name string) bool {
	_, err := d.dir.Stat(name)
	return err == nil
}

// any reports whether there is something by one of these names.
func (d *gitDir) any(names ...string) bool { return slices.ContainsFunc(names, d.has) }

// own reports whether the directory belongs to this user.
func (d *gitDir) own() bool {
	in, err := d.dir.Self()
	return err == nil && int(in.UID) == os.Getuid()
}

// load reads a small file.
func (d *gitDir) load(name string, most int64) ([]byte, error) {
	data, _, more, err := d.dir.Load(name, nil, most)
	if err == nil && more {
		err = fault.New(contract.ResourceLimit, "a file of the repository is larger than any that git makes").
			WithHint("the owner may have to look at the repository")
	}
	return data, err
}

// common is the directory that a linked work tree shares with the others.
func (d *gitDir) common(path string) (string, error) {
	if !d.has("commondir") {
		return path, nil
	}
	line, err := d.load("commondir", maxPointer)
	if err != nil {
		return "", gitFault(err)
	}
	return resolve(path, strings.TrimRight(string(line), "\r\n"))
}
