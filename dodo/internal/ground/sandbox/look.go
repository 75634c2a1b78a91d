package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/fault"
)

// Look finds a program by its bare name in the Box's path, outside of the workspace.
// NOT_FOUND says that there is none.
func (p *Place) Look(name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return "", fault.New(contract.InvalidInput, "the name of a program has no slash")
	}
	for _, dir := range p.path() {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fault.New(contract.NotFound, "there is no program of that name in the trusted path").
		WithHint("environment_info lists what is installed; a program of the workspace is named by its path, such as ./name")
}

// path are the directories in which programs are looked for: absolute, each once, and none
// that leads into the workspace, where a caller could plant a program.
func (p *Place) path() (dirs []string) {
	seen := map[string]bool{}
	for _, dir := range p.box.o.Path {
		if !filepath.IsAbs(dir) {
			continue
		}
		dir = filepath.Clean(dir)
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[dir] || walls.Within(p.root, dir) || walls.Within(p.root, real) {
			continue
		}
		seen[dir] = true
		dirs = append(dirs, dir)
	}
	return dirs
}

// Path is the value of PATH that commands of this place get.
func (p *Place) Path() string { return strings.Join(p.path(), string(filepath.ListSeparator)) }
