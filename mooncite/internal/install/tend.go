package install

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/safefile"
)

// Clients write more than the entry that comes or goes: Codex makes all its mcp_servers
// anew, without the comments and the spacing of the others, and Pi its whole settings.
// Both are files that people write by hand, so what was done to anything but our entry is
// taken back.

// tended runs a client's change of a file and gives the file the bytes that keep makes of
// those before and those after. Where that is not possible the file stays as the client
// wrote it, which means the same.
func tended(path string, change func() error, keep func(before, after []byte) ([]byte, bool)) error {
	before, _ := os.ReadFile(path) // there may be none
	failed := change()             // what has failed may have written all the same
	after, err := os.ReadFile(path)
	if err != nil {
		return failed // the client keeps it elsewhere
	}
	if want, ok := keep(before, after); ok && !bytes.Equal(want, after) {
		_ = rewrite(path, after, want)
	}
	return failed
}

// rewrite replaces the content of a file that is still what it was a moment ago. A link,
// as dotfile managers make them, stays one.
func rewrite(path string, was, data []byte) error {
	end, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	st, err := os.Stat(end)
	if err != nil {
		return err
	}
	dir, err := safefile.OpenRoot(filepath.Dir(end), safefile.RefuseLinks)
	if err != nil {
		return err
	}
	defer dir.Close()
	if now, err := os.ReadFile(end); err != nil || !bytes.Equal(now, was) {
		return fs.ErrInvalid // somebody else writes to it
	}
	return dir.WriteFileAtomic(filepath.Base(end), data, st.Mode().Perm())
}
