package install

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/evidence"
)

// launcher says what has the launcher's name.
type launcher int

const (
	noLauncher    launcher = iota
	ourLauncher            // a link to the program in force
	equalLauncher          // a copy of the program, as make install puts one there
)

const launcherWhat = "the directory of the launcher"

// launcher looks at the launcher; anything else of its name is refused.
func (p Places) launcher(program []byte) (launcher, error) {
	dir := filepath.Dir(p.Launcher)
	root, err := privdir.OpenConfig(dir, launcherWhat)
	if errors.Is(err, fs.ErrNotExist) {
		return noLauncher, p.aboveLauncher()
	}
	if err != nil {
		return noLauncher, err
	}
	root.Close()
	st, err := os.Lstat(p.Launcher)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noLauncher, nil
	case err != nil:
		return noLauncher, p.taken(err)
	case st.Mode().Type() == fs.ModeSymlink:
		if to, err := os.Readlink(p.Launcher); err != nil || to != p.Program() {
			return noLauncher, p.taken(err)
		}
		return ourLauncher, nil
	case !st.Mode().IsRegular() || st.Size() != int64(len(program)):
		return noLauncher, p.taken(nil)
	}
	data, err := os.ReadFile(p.Launcher)
	if err != nil || !bytes.Equal(data, program) {
		return noLauncher, p.taken(err)
	}
	return equalLauncher, nil
}

// aboveLauncher judges what the launcher's directory would be made in.
func (p Places) aboveLauncher() error {
	for dir := filepath.Dir(filepath.Dir(p.Launcher)); ; dir = filepath.Dir(dir) {
		root, err := privdir.OpenConfig(dir, "the directory above the launcher's")
		if errors.Is(err, fs.ErrNotExist) && dir != "/" {
			continue
		}
		if err == nil {
			root.Close()
		}
		return err
	}
}

func (p Places) taken(cause error) error {
	return fault.Wrap(evidence.CodeInstall, &privdir.At{Path: p.Launcher, Err: cause}, "another command of the name mooncite is where the launcher would be").
		WithHint("run that one's own uninstall or move it away; a copy of this very program is accepted, as `make install` makes one")
}

// makeLauncher links the program. The name is free.
func (p Places) makeLauncher() error {
	err := os.MkdirAll(filepath.Dir(p.Launcher), 0o755)
	if err == nil {
		err = os.Symlink(p.Program(), p.Launcher)
	}
	if err != nil {
		return fault.Wrap(evidence.CodeInstall, &privdir.At{Path: p.Launcher, Err: err}, "the launcher cannot be made").
			WithHint("look at the permissions of its directory")
	}
	return nil
}

// removeLauncher removes the launcher when it is a link to the program.
func (p Places) removeLauncher() error {
	to, err := os.Readlink(p.Launcher)
	if err != nil || to != p.Program() {
		return nil // not ours
	}
	if err := os.Remove(p.Launcher); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(evidence.CodeInstall, &privdir.At{Path: p.Launcher, Err: err}, "the launcher cannot be removed").
			WithHint("look at the permissions of its directory")
	}
	return nil
}
