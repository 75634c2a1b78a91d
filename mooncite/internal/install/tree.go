package install

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

const rootWhat = "the installation directory"

// openRoot opens the installation's directory. One that is missing or as good as empty
// gives fs.ErrNotExist, one that is another program's a fault that names the way out.
func (p Places) openRoot() (*safefile.Root, error) {
	dir, err := privdir.Open(p.Root, rootWhat, markerName)
	if err != nil {
		return nil, err
	}
	empty, err := unmarked(dir)
	if err == nil && empty {
		err = fs.ErrNotExist
	}
	if err == nil {
		err = p.checkMarker(dir)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// unmarked reports whether a directory holds nothing but what the first and the last
// moments of an installation can leave.
func unmarked(dir *safefile.Root) (bool, error) {
	entries, _, err := dir.ReadDir(".")
	if err != nil {
		return false, fault.Wrap(evidence.CodeInstall, err, "%s cannot be read", rootWhat).WithHint("look at its permissions")
	}
	return !slices.ContainsFunc(entries, func(e safefile.Entry) bool {
		return e.Name != lockName && !strings.HasPrefix(e.Name, "."+markerName+".")
	}), nil
}

func (p Places) checkMarker(dir *safefile.Root) error {
	f, _, err := dir.Open(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return p.foreign(nil)
	}
	if err != nil {
		return fault.Wrap(evidence.CodeInstall, err, "the marker of the installation cannot be read").WithHint("look at its permissions")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(len(marker))+1))
	if err != nil || string(data) != marker {
		return p.foreign(err)
	}
	return nil
}

func (p Places) foreign(cause error) error {
	return fault.Wrap(evidence.CodeInstall, &privdir.At{Path: p.Root, Err: cause}, "another program is installed where mooncite would be").
		WithHint("remove it with its own uninstall, or set XDG_DATA_HOME to another directory")
}

// makeRoot makes the installation's directory. One that holds anything but what a first
// install that crashed can have left stays as it is.
func (p Places) makeRoot() error {
	dir, err := privdir.Create(p.Root, rootWhat, markerName)
	if err != nil {
		return err
	}
	defer dir.Close()
	if empty, err := unmarked(dir); empty || err != nil {
		return err
	}
	return p.checkMarker(dir)
}

// claim marks the installation's directory as mooncite's and reports whether it was not
// before. The lock is held.
func (p Places) claim() (dir *safefile.Root, fresh bool, err error) {
	dir, err = privdir.Open(p.Root, rootWhat, markerName)
	if err != nil {
		return nil, false, err
	}
	fresh, err = unmarked(dir)
	if err == nil && fresh {
		if err = dir.WriteFileAtomic(markerName, []byte(marker), 0o600); err != nil {
			err = unwritable(err)
		}
	}
	if err == nil {
		err = p.checkMarker(dir)
	}
	if err != nil {
		dir.Close()
		return nil, false, err
	}
	return dir, fresh, nil
}

func unwritable(err error) error {
	return fault.Wrap(evidence.CodeInstall, err, "%s cannot be written", rootWhat).
		WithHint("look at the space and the permissions of the disk it is on; nothing was installed")
}

// stage writes a whole package beside the one in force and returns its name.
func stage(dir *safefile.Root, version string, files map[string][]byte) (string, error) {
	name := stagePrefix + rand.Text()
	at := filepath.Join(dir.Path(), name)
	m := manifestOf(version, files)
	err := os.Mkdir(at, 0o700)
	for _, d := range m.directories() {
		err = errors.Join(err, os.Mkdir(filepath.Join(at, d), 0o700))
	}
	if err != nil {
		return name, unwritable(err)
	}
	put := func(rel string, data []byte, mode fs.FileMode) error {
		sub, err := dir.Sub(path.Join(name, path.Dir(rel)))
		if err != nil {
			return err
		}
		defer sub.Close()
		return sub.WriteFileAtomic(path.Base(rel), data, mode)
	}
	for rel, data := range files {
		mode := fs.FileMode(0o600)
		if rel == programRel {
			mode = 0o700
		}
		if err := put(rel, data, mode); err != nil {
			return name, unwritable(err)
		}
	}
	if err := put(manifestRel, indented(m), 0o600); err != nil {
		return name, unwritable(err)
	}
	for _, d := range m.directories() { // those that hold no file were not flushed with one
		if err := flush(filepath.Join(at, d)); err != nil {
			return name, unwritable(err)
		}
	}
	return name, nil
}

// flush puts a directory's names on the disk.
func flush(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// sweep removes what a crash left: packages that were never or are no longer in force.
// The lock is held, so none of them is being made.
func sweep(dir *safefile.Root) error {
	entries, _, err := dir.ReadDir(".")
	if err != nil {
		return unwritable(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name, stagePrefix) {
			if err := os.RemoveAll(filepath.Join(dir.Path(), e.Name)); err != nil {
				return unwritable(err)
			}
		}
	}
	return nil
}

// state is what is in force.
type state struct {
	there   bool
	version string
	whole   bool // every file is as it was put there
	digests map[string]string
}

// inspect looks at the package in force. Anything in it that its manifest does not name,
// and anything that is no plain file of the user's, is refused: it would be removed with
// the package.
func inspect(dir *safefile.Root, r *record) (state, error) {
	if st, err := dir.Stat(packageName); errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	} else if err != nil || st.Type != safefile.Directory {
		return state{}, strange(packageName, err)
	}
	pkg, err := dir.Sub(packageName)
	if err != nil {
		return state{}, strange(packageName, err)
	}
	defer pkg.Close()
	var m manifest
	if err := readJSON(pkg, manifestRel, &m); err != nil || m.Version != manifestVersion || !r.names(m.Package) {
		return state{}, fault.Wrap(evidence.CodeInstall, err, "the installed package is not one that the record of the installation names").
			WithHint("move the directory %s out of the installation and install again", packageName)
	}
	s := state{there: true, version: m.Package, digests: map[string]string{}}
	if err := look(pkg, ".", m, &s); err != nil {
		return state{}, err
	}
	s.whole = len(s.digests) == len(m.Files)
	for name, want := range m.Files {
		s.whole = s.whole && s.digests[name] == want
	}
	return s, nil
}

// look reads the tree below rel.
func look(pkg *safefile.Root, rel string, m manifest, s *state) error {
	entries, _, err := pkg.ReadDir(rel)
	if err != nil {
		return strange(rel, err)
	}
	dirs := m.directories()
	for _, e := range entries {
		name := path.Join(rel, e.Name)
		switch _, ours := m.Files[name]; {
		case e.Type == safefile.Directory && slices.Contains(dirs, name):
			if err := look(pkg, name, m, s); err != nil {
				return err
			}
		case e.Type == safefile.Regular && (ours || name == manifestRel):
			sub, err := pkg.Sub(rel)
			if err != nil {
				return strange(name, err)
			}
			err = privdir.CheckFile(sub, e.Name, "a file of the installed package")
			sub.Close()
			if err != nil {
				return err
			}
			if !ours {
				continue
			}
			if s.digests[name], err = fileDigest(pkg, name); err != nil {
				return strange(name, err)
			}
		case e.Type == safefile.Regular && leftover(e.Name):
		default:
			return strange(name, nil)
		}
	}
	return nil
}

// leftover reports whether a name is that of a temporary file of [safefile.Root].
func leftover(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

func strange(name string, err error) error {
	return fault.Wrap(evidence.CodeInstall, err, "the installed package holds something that mooncite did not put there: %s", evidence.Visible(name)).
		WithHint("move it out of the installation and try again; mooncite removes only what it made")
}

func fileDigest(dir *safefile.Root, rel string) (string, error) {
	f, _, err := dir.Open(rel)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
