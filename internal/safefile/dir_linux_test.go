package safefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"localmcp/internal/safefile"
)

func openDir(t testing.TB, dir string) *safefile.Dir {
	t.Helper()
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	d, err := r.OpenDir(".")
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func TestDirReads(t *testing.T) {
	dir := realTemp(t)
	write(t, filepath.Join(dir, "a/b/x"), "hello")
	must(t, os.Symlink("a", filepath.Join(dir, "ln")))
	must(t, os.Symlink("x", filepath.Join(dir, "a/b/ln")))
	must(t, unix.Mkfifo(filepath.Join(dir, "a/b/fifo"), 0o600))
	eachWay(t, dir, func(t *testing.T, r *safefile.Root) {
		if _, err := r.OpenDir("ln/b"); !errors.Is(err, safefile.ErrNotDirectory) {
			t.Errorf("through a link: %v", err)
		}
		if _, err := r.OpenDir("a/../a"); !errors.Is(err, safefile.ErrName) {
			t.Errorf("through ..: %v", err)
		}
		a, err := r.OpenDir("a")
		must(t, err)
		defer a.Close()
		b, err := a.Sub("b")
		must(t, err)
		defer b.Close()
		for range 2 { // a listing starts at the start
			list, err := b.Entries()
			must(t, err)
			slices.SortFunc(list, func(x, y safefile.Entry) int { return strings.Compare(x.Name, y.Name) })
			want := []safefile.Entry{{Name: "fifo", Type: safefile.Other}, {Name: "ln", Type: safefile.Link}, {Name: "x", Type: safefile.Regular}}
			if diff := cmp.Diff(want, list); diff != "" {
				t.Error(diff)
			}
		}
		self, err := b.Self()
		must(t, err)
		st, err := r.Stat("a/b")
		must(t, err)
		if diff := cmp.Diff(st, self); diff != "" {
			t.Error(diff)
		}
		f, in, err := b.Open("x")
		must(t, err)
		defer f.Close()
		data, err := io.ReadAll(f)
		must(t, err)
		if string(data) != "hello" || in.Size != 5 || in.Hard != 1 {
			t.Errorf("%q, %+v", data, in)
		}
		for name, want := range map[string]error{
			"ln": safefile.ErrNotRegular, "fifo": safefile.ErrNotRegular, "none": fs.ErrNotExist, "a/x": safefile.ErrName, "..": safefile.ErrName, "": safefile.ErrName,
		} {
			if _, _, err := b.Open(name); !errors.Is(err, want) {
				t.Errorf("Open(%q) = %v", name, err)
			}
			if _, _, _, err := b.Load(name, nil, 10); !errors.Is(err, want) {
				t.Errorf("Load(%q) = %v", name, err)
			}
		}
		if _, _, err := a.Open("b"); !errors.Is(err, safefile.ErrNotRegular) {
			t.Errorf("Open of a directory: %v", err)
		}
		for name, want := range map[string]error{"x": safefile.ErrNotDirectory, "ln": safefile.ErrNotDirectory, "none": fs.ErrNotExist, "../b": safefile.ErrName} {
			if _, err := b.Sub(name); !errors.Is(err, want) {
				t.Errorf("Sub(%q) = %v", name, err)
			}
		}
	})
}

func TestLoadTakesNoMoreThanAsked(t *testing.T) {
	dir := realTemp(t)
	write(t, filepath.Join(dir, "x"), strings.Repeat("0123456789", 1000))
	write(t, filepath.Join(dir, "empty"), "")
	d := openDir(t, dir)
	buf := make([]byte, 0, 16<<10)
	for _, c := range []struct {
		max  int64
		len  int
		more bool
	}{{0, 0, true}, {9_999, 0, true}, {10_000, 10_000, false}, {1 << 40, 10_000, false}} {
		for _, buf := range [][]byte{nil, buf} {
			data, in, more, err := d.Load("x", buf, c.max)
			must(t, err)
			if len(data) != c.len || more != c.more || in.Size != 10_000 {
				t.Errorf("max %d: %d bytes, more %v, size %d", c.max, len(data), more, in.Size)
			}
		}
	}
	data, _, more, err := d.Load("empty", nil, 0)
	must(t, err)
	if len(data) != 0 || more {
		t.Errorf("an empty file: %d bytes, more %v", len(data), more)
	}
	// What the kernel makes says it has no bytes: it is read to its end all the same.
	proc := openDir(t, "/proc")
	data, in, _, err := proc.Load("cpuinfo", nil, 1<<20)
	must(t, err)
	if in.Size != 0 || len(data) == 0 {
		t.Errorf("cpuinfo of size %d: %d bytes", in.Size, len(data))
	}
	if data, _, more, err := proc.Load("cpuinfo", nil, 10); err != nil || len(data) > 0 || !more {
		t.Errorf("more than asked for: %d bytes, more %v, %v", len(data), more, err)
	}
	for d, want := range map[*safefile.Dir]bool{proc: true, d: false} {
		if made, err := d.KernelMade(); err != nil || made != want {
			t.Errorf("made by the kernel: %v, %v", made, err)
		}
	}
	f, err := os.Open("/proc/version")
	must(t, err)
	defer f.Close()
	if made, err := safefile.KernelMade(f); err != nil || !made {
		t.Errorf("made by the kernel: %v, %v", made, err)
	}
}

func TestDirChangesOneEntry(t *testing.T) {
	dir := realTemp(t)
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	d := openDir(t, dir)
	sub, err := d.Sub("sub")
	must(t, err)
	defer sub.Close()
	holds := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	taken := func(err error) {
		t.Helper()
		if !errors.Is(err, fs.ErrExist) {
			t.Errorf("a name that is taken: %v", err)
		}
	}
	must(t, d.Create("a", []byte("one"), 0o751))
	in, err := d.Stat("a")
	must(t, err)
	if in.Mode != 0o751 {
		t.Errorf("mode %o", in.Mode)
	}
	taken(d.Create("a", []byte("two"), 0o600))
	holds("a", "one")
	must(t, d.Link("a", sub, "b"))
	taken(d.Link("a", sub, "b"))
	must(t, d.Remove("a"))
	holds("sub/b", "one")
	must(t, d.Create("c", []byte("three"), 0o600))
	taken(d.Move("c", sub, "b"))
	must(t, d.Exchange("c", sub, "b"))
	holds("c", "one")
	holds("sub/b", "three")
	must(t, sub.Move("b", d, "d"))
	holds("d", "three")
	must(t, d.Mkdir("m", 0o755))
	taken(d.Mkdir("m", 0o755))
	must(t, d.Move("d", sub, "d"))
	if err := d.RemoveDir("sub"); !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("a directory with something in it: %v", err)
	}
	if err := d.Remove("m"); err == nil {
		t.Error("a directory was removed as a file")
	}
	must(t, d.RemoveDir("m"))
	must(t, d.Sync())

	// A link is taken for itself: what it points to stays.
	write(t, filepath.Join(dir, "victim"), "untouched")
	must(t, os.Symlink("victim", filepath.Join(dir, "ln")))
	taken(d.Create("ln", nil, 0o600))
	must(t, d.Exchange("ln", d, "c"))
	holds("ln", "one")
	holds("victim", "untouched")
	must(t, d.Remove("c"))
	holds("victim", "untouched")

	for _, name := range []string{"", ".", "..", "sub/x", "x\x00"} {
		for what, err := range map[string]error{
			"Create": d.Create(name, nil, 0o600), "Mkdir": d.Mkdir(name, 0o700), "Move": d.Move(name, d, "y"), "Move to": d.Move("victim", d, name),
			"Exchange": d.Exchange("victim", d, name), "Link": d.Link("victim", d, name), "Remove": d.Remove(name), "RemoveDir": d.RemoveDir(name),
		} {
			if !errors.Is(err, safefile.ErrName) {
				t.Errorf("%s(%q) = %v", what, name, err)
			}
		}
	}
	holds("victim", "untouched")
}

func TestRootInPlace(t *testing.T) {
	dir := realTemp(t)
	must(t, os.Mkdir(filepath.Join(dir, "r"), 0o700))
	r, err := safefile.OpenRoot(filepath.Join(dir, "r"), safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	in := func() bool { ok, err := r.InPlace(); return ok && err == nil }
	if !in() {
		t.Error("it is in its place")
	}
	must(t, os.Rename(filepath.Join(dir, "r"), filepath.Join(dir, "moved")))
	if _, err := r.InPlace(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	must(t, os.Symlink("moved", filepath.Join(dir, "r")))
	if in() {
		t.Error("a link to it is in its place")
	}
}
