package sandbox

import (
	"errors"
	"os"
	"path/filepath"

	"localmcp/dodo/internal/ground/walls"
)

var errNoBwrap = errors.New("bubblewrap is not installed")

// bwrapPath is where bubblewrap is looked for: where the system's administrator put it.
var bwrapPaths = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"}

// wrap are the arguments that let bubblewrap make the namespaces of a plan and run the
// helper in them; nil where the plan does not want it, or it is not there.
func (b *Box) wrap(p plan) []string {
	if p.level != Bwrap {
		return nil
	}
	for _, path := range bwrapPaths {
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return bwrapArgs(path, b.o.Helper, p)
		}
	}
	return nil
}

func bwrapArgs(path, helper string, p plan) []string {
	if real, err := filepath.EvalSymlinks(helper); err == nil {
		helper = real
	}
	a := []string{path, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"}
	if p.Loopback && !p.Skips("net") {
		a = append(a, "--unshare-net")
	}
	a = append(a, "--tmpfs", "/", "--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--perms", "1777", "--tmpfs", "/dev/shm")
	for _, l := range p.Links {
		if filepath.Dir(l.Name) != "/dev" {
			a = append(a, "--symlink", l.To, l.Name)
		}
	}
	for _, m := range p.Mounts {
		if m.Device {
			continue // bubblewrap makes its own
		}
		how := "--ro-bind"
		if m.Write {
			how = "--bind"
		}
		if m.Optional {
			how += "-try"
		}
		a = append(a, how, m.From, m.To)
	}
	for _, c := range p.Covers {
		if p.Skips("cover") {
			break
		}
		// What is not there was moved, which the helper finds.
		switch st, err := os.Lstat(c.Path); {
		case err != nil:
		case st.IsDir():
			a = append(a, "--perms", "0555", "--tmpfs", c.Path, "--remount-ro", c.Path)
		default:
			a = append(a, "--ro-bind", p.empty, c.Path)
		}
	}
	return append(a, "--ro-bind", helper, walls.InsideName, "--remount-ro", "/", "--", walls.InsideName)
}
