package install

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// Clients write more than the entry that comes or goes: Codex makes all its mcp_servers
// anew, without the comments and the spacing of the others, and Pi its whole settings.
// Both are files that people write by hand, so what was done to anything but our entry is
// taken back.

// savedPrefix begins the name, in the installation, of what a client's file was before a
// change that runs, so that the next call can settle one that was killed.
const savedPrefix = "before-"

// tended is such a file.
type tended struct {
	*base
	path string
	// keep makes the file's bytes of those before and those after a change.
	keep func(before, after []byte) ([]byte, bool)
	// probe, when not nil, says how the client reads the file.
	probe func(context.Context) Finding
}

// change runs a client's change of the file and settles it.
func (t tended) change(ctx context.Context, do func() error) error {
	before, err := os.ReadFile(t.path)
	if err != nil { // there is none, or none that could be put in order
		return do()
	}
	root, err := safefile.OpenRoot(t.places.Root, safefile.RefuseLinks)
	if err == nil {
		err = root.WriteFileAtomic(t.saved(), before, 0o600)
		root.Close()
	}
	if err != nil {
		return fault.Wrap(evidence.CodeInstall, err, "%s cannot be written", rootWhat).
			WithHint("look at the space and the permissions of the disk it is on")
	}
	failed := do() // what has failed may have written all the same
	t.progress(t.label + " has written its settings")
	t.settle(ctx, before)
	return errors.Join(failed, t.forget())
}

func (t tended) saved() string   { return savedPrefix + t.id }
func (t tended) forget() error   { return os.Remove(filepath.Join(t.places.Root, t.saved())) }
func savedFile(name string) bool { return strings.HasPrefix(name, savedPrefix) }

// resume settles a change whose process was killed.
func (t tended) resume(ctx context.Context) error {
	root, err := safefile.OpenRoot(t.places.Root, safefile.RefuseLinks)
	if err != nil {
		return unwritable(err)
	}
	defer root.Close()
	f, _, err := root.Open(t.saved())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return strange(t.saved(), err)
	}
	before, err := io.ReadAll(f)
	f.Close()
	if err != nil {
		return strange(t.saved(), err)
	}
	t.settle(ctx, before)
	return t.forget()
}

// settle gives the file what keep makes of it. Where that is not possible, and where the
// client then reads it in another way, the file stays as the client wrote it.
func (t tended) settle(ctx context.Context, before []byte) {
	after, err := os.ReadFile(t.path)
	if err != nil {
		return // the client keeps it elsewhere
	}
	want, ok := t.keep(before, after)
	if !ok || bytes.Equal(want, after) {
		return
	}
	if t.probe == nil {
		_ = rewrite(t.path, after, want)
		return
	}
	ctx = context.WithoutCancel(ctx) // an interrupt is no answer
	said := t.probe(ctx).State
	if rewrite(t.path, after, want) == nil && t.probe(ctx).State != said {
		_ = rewrite(t.path, want, after)
	}
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
