package config

import (
	"path/filepath"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// DirVariable names the installation directory. Another directory is another installation.
const DirVariable = "DODO_CONFIG_DIR"

// Dir is the installation directory by the environment: DODO_CONFIG_DIR, or dodo below
// XDG_STATE_HOME, or below ~/.local/state. It need not exist.
func Dir(env map[string]string) (string, error) {
	name, dir := DirVariable, env[DirVariable]
	if dir == "" {
		if name, dir = "XDG_STATE_HOME", env["XDG_STATE_HOME"]; !filepath.IsAbs(dir) { // the XDG rule: what is relative counts as unset
			name, dir = "HOME", env["HOME"]
			if dir == "" {
				return "", fault.New(contract.InvalidInput, "there is no HOME to keep dodo's state in").WithHint("set HOME or %s", DirVariable)
			}
			dir = filepath.Join(dir, ".local", "state")
		}
		dir = filepath.Join(dir, "dodo")
	}
	if !filepath.IsAbs(dir) {
		return "", fault.New(contract.InvalidInput, "%s is not an absolute path", name).WithHint("give a path that begins with /")
	}
	return filepath.Clean(dir), nil
}
