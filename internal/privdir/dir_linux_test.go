package privdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
)

const what = "the state directory"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

// rootOnly skips what only root can arrange: files of other users.
func rootOnly(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
}

// refused checks code, advice and silence about paths.
func refused(t *testing.T, err error, code fault.Code, words string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
	f := fault.From(err)
	if !strings.Contains(f.Msg, words) {
		t.Errorf("%q does not say %q", f.Msg, words)
	}
	if f.Hint == "" {
		t.Errorf("%q has no advice", f.Msg)
	}
	var at *privdir.At
	if !errors.As(err, &at) || !filepath.IsAbs(at.Path) {
		t.Errorf("%q does not know where", f.Msg)
	} else if strings.Contains(f.Msg+f.Hint, filepath.Dir(at.Path)) && filepath.Dir(at.Path) != "/" {
		t.Errorf("%q, %q shows a path", f.Msg, f.Hint)
	}
}

func TestCreateMakesPrivateDirectories(t *testing.T) {
	dir := filepath.Join(realTemp(t), "a/b/state")
	r, err := privdir.Create(dir, what)
	must(t, err)
	defer r.Close()
	for d := dir; filepath.Base(d) != "a"; d = filepath.Dir(d) {
		st, err := os.Stat(d)
		must(t, err)
		if st.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", d, st.Mode())
		}
	}
	again, err := privdir.Create(dir, what)
	must(t, err)
	again.Close()
}

func TestOpenRefuses(t *testing.T) {
	base := realTemp(t)
	mk := func(name string, mode os.FileMode) string {
		p := filepath.Join(base, name)
		must(t, os.MkdirAll(p, 0o700))
		must(t, os.Chmod(p, mode))
		return p
	}
	_, err := privdir.Open(mk("open", 0o755), what)
	refused(t, err, privdir.Unsafe, "is open to other users (mode 0755)")

	// Only what is empty or known to be ours is to be closed.
	_, err = privdir.Create("/", what, ".mark")
	if os.Geteuid() == 0 && (err == nil || strings.Contains(fault.From(err).Hint, "chmod")) {
		t.Errorf("the root: %v", fault.From(err))
	}
	full := mk("full", 0o755)
	for _, c := range []struct{ put, says, hint string }{
		{"", "is open to other users (mode 0755)", "chmod 700"},
		{"others", "holds what this program did not put there", "a directory of its own"},
		{".mark", "is open to other users (mode 0755)", "chmod 700"},
	} {
		if c.put != "" {
			must(t, os.WriteFile(filepath.Join(full, c.put), nil, 0o600))
		}
		_, err := privdir.Open(full, what, ".mark")
		refused(t, err, privdir.Unsafe, c.says)
		if hint := fault.From(err).Hint; !strings.Contains(hint, c.hint) {
			t.Errorf("with %q the hint is %q", c.put, hint)
		}
	}
	_, err = privdir.Open(filepath.Join(base, "none"), what)
	refused(t, err, privdir.Unusable, "does not exist")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("a missing directory is not fs.ErrNotExist")
	}
	must(t, os.WriteFile(filepath.Join(base, "file"), nil, 0o600))
	_, err = privdir.Open(filepath.Join(base, "file"), what)
	refused(t, err, privdir.Unusable, "not a directory")
	_, err = privdir.Open("state", what)
	if !errors.Is(err, privdir.Unusable) {
		t.Errorf("a relative path: %v", err)
	}

	must(t, os.Symlink(mk("real", 0o700), filepath.Join(base, "ln")))
	_, err = privdir.Open(filepath.Join(base, "ln"), what)
	refused(t, err, privdir.Unsafe, "has a symbolic link")
	_, err = privdir.Create(filepath.Join(base, "ln/new/state"), what)
	refused(t, err, privdir.Unsafe, "has a symbolic link")
	if _, err := os.Stat(filepath.Join(base, "real/new")); err == nil {
		t.Error("a directory was made behind a link")
	}
}

func TestDirectoriesAbove(t *testing.T) {
	base := realTemp(t)
	must(t, os.Chmod(base, 0o755))
	must(t, os.Chmod(filepath.Dir(base), 0o755))
	above := filepath.Join(base, "above")
	state := filepath.Join(above, "state")
	must(t, os.MkdirAll(state, 0o700))
	for _, c := range []struct {
		mode os.FileMode
		ok   bool
	}{
		{0o700, true},
		{0o755, true},
		{0o775, true}, // umask 002 and a group of one's own
		{0o777, false},
		{0o777 | os.ModeSticky, true}, // as /tmp
	} {
		must(t, os.Chmod(above, c.mode))
		r, err := privdir.Open(state, what)
		if c.ok {
			must(t, err)
			r.Close()
			continue
		}
		refused(t, err, privdir.Unsafe, "can be changed by everyone")
	}
}

func TestDirectoriesOfOthers(t *testing.T) {
	rootOnly(t)
	base := realTemp(t)
	above := filepath.Join(base, "above")
	state := filepath.Join(above, "state")
	must(t, os.MkdirAll(state, 0o700))

	must(t, os.Chown(state, 12345, 0))
	_, err := privdir.Open(state, what)
	refused(t, err, privdir.Unsafe, "belongs to another user")
	must(t, os.Chown(state, 0, 0))

	must(t, os.Chown(above, 12345, 0))
	_, err = privdir.Open(state, what)
	refused(t, err, privdir.Unsafe, "a directory above the state directory belongs to another user")
	must(t, os.Chown(above, 0, 12345))
	must(t, os.Chmod(base, 0o755))
	must(t, os.Chmod(filepath.Dir(base), 0o755))
	must(t, os.Chmod(above, 0o770))
	_, err = privdir.Open(state, what)
	refused(t, err, privdir.Unsafe, "can be changed by its group")
	must(t, os.Chmod(base, 0o700)) // nobody else gets as far as that group's directory
	r, err := privdir.Open(state, what)
	must(t, err)
	r.Close()
}

func TestConfigIsLenient(t *testing.T) {
	base := realTemp(t)
	dir := filepath.Join(base, "real")
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Symlink("real", filepath.Join(base, "config")))
	file := filepath.Join(dir, "sources.json")
	must(t, os.WriteFile(file, []byte("{}"), 0o644))
	for _, mode := range []os.FileMode{0o700, 0o755, 0o775} {
		must(t, os.Chmod(dir, mode))
		must(t, os.Chmod(file, mode&0o666))
		r, err := privdir.OpenConfig(filepath.Join(base, "config"), "the configuration directory")
		must(t, err)
		got, err := privdir.ReadConfig(r, "sources.json", "sources.json", 10)
		must(t, err)
		if string(got) != "{}" {
			t.Errorf("read %q", got)
		}
		r.Close()
	}
	must(t, os.Chmod(dir, 0o757))
	_, err := privdir.OpenConfig(dir, "the configuration directory")
	refused(t, err, privdir.Unsafe, "can be changed by everyone")
}

func TestReadConfigRefuses(t *testing.T) {
	dir := realTemp(t)
	r, err := privdir.OpenConfig(dir, "the configuration directory")
	must(t, err)
	defer r.Close()
	file := filepath.Join(dir, "c.json")
	read := func(max int64) error {
		_, err := privdir.ReadConfig(r, "c.json", "c.json", max)
		return err
	}
	if err := read(10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	must(t, os.WriteFile(file, make([]byte, 11), 0o600))
	refused(t, read(10), privdir.Unusable, "larger than 10 bytes")
	must(t, read(11))
	must(t, os.Chmod(file, 0o666))
	refused(t, read(20), privdir.Unsafe, "can be changed by everyone (mode 0666)")
	must(t, os.Remove(file))
	must(t, unix.Mkfifo(file, 0o600))
	refused(t, read(20), privdir.Unusable, "not a regular file")
	must(t, os.Remove(file))
	must(t, os.Symlink("/etc/hostname", file))
	refused(t, read(2000), privdir.Unusable, "not a regular file")
}

func TestReadConfigOfAnotherUser(t *testing.T) {
	rootOnly(t)
	dir := realTemp(t)
	r, err := privdir.OpenConfig(dir, "the configuration directory")
	must(t, err)
	defer r.Close()
	file := filepath.Join(dir, "c.json")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	must(t, os.Chown(file, 12345, 12345))
	_, err = privdir.ReadConfig(r, "c.json", "c.json", 10)
	refused(t, err, privdir.Unsafe, "belongs to another user")
}

func TestCheckFile(t *testing.T) {
	dir := realTemp(t)
	r, err := privdir.Open(dir, what)
	if errors.Is(err, privdir.Unsafe) {
		must(t, os.Chmod(dir, 0o700))
		r, err = privdir.Open(dir, what)
	}
	must(t, err)
	defer r.Close()
	file := filepath.Join(dir, "f")
	check := func() error { return privdir.CheckFile(r, "f", "the index") }
	if err := check(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, check())
	must(t, os.Link(file, filepath.Join(dir, "second")))
	refused(t, check(), privdir.Unsafe, "second name")
	must(t, os.Remove(filepath.Join(dir, "second")))
	must(t, os.Chmod(file, 0o640))
	refused(t, check(), privdir.Unsafe, "open to other users (mode 0640)")
	must(t, os.Remove(file))
	must(t, os.Symlink("x", file))
	refused(t, check(), privdir.Unsafe, "not a regular file")
}
