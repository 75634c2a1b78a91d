package sandbox

import (
	"os"
	"path/filepath"
)

// guards keep a command from turning the workspace's repository against whoever uses git
// there later: the directory is a mount of its own, so that it cannot be moved away, and
// what names programs in it cannot be changed.
func (p *Place) guards() (list []mount) {
	dir := filepath.Join(p.Root, ".git")
	st, err := os.Lstat(dir)
	if err != nil || st.Mode()&os.ModeSymlink != 0 {
		return nil // what is made there meanwhile is reported
	}
	if !st.IsDir() {
		return []mount{{From: dir, To: dir, Optional: true}}
	}
	list = append(list, mount{From: dir, To: dir, Write: true, Optional: true})
	for _, name := range []string{"hooks", "config", "config.worktree", "commondir", "info/attributes"} {
		path := filepath.Join(dir, name)
		if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSymlink == 0 {
			list = append(list, mount{From: path, To: path, Optional: true})
		}
	}
	return list
}
