package safefile_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"localmcp/internal/safefile"
)

// eachWay runs a test on a root that uses openat2 and on one that may not.
func eachWay(t *testing.T, dir string, f func(t *testing.T, r *safefile.Root)) {
	t.Helper()
	for _, way := range []string{"openat2", "walk"} {
		t.Run(way, func(t *testing.T) {
			r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			if way == "walk" {
				safefile.WithoutOpenat2(r)
			}
			f(t, r)
		})
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// realTemp is a temporary directory whose path has no link in it.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func TestOpenReadsRegularFilesOnly(t *testing.T) {
	dir := realTemp(t)
	write(t, filepath.Join(dir, "a/b/x.jsonl"), "hello")
	write(t, filepath.Join(dir, "secret"), "secret")
	must(t, unix.Mkfifo(filepath.Join(dir, "a/fifo"), 0o600))
	must(t, os.Symlink("b/x.jsonl", filepath.Join(dir, "a/link")))
	must(t, os.Symlink("b", filepath.Join(dir, "a/linkdir")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "outside")))
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	must(t, err)
	defer l.Close()

	eachWay(t, dir, func(t *testing.T, r *safefile.Root) {
		f, id, err := r.Open("a/b/x.jsonl")
		must(t, err)
		defer f.Close()
		got, err := io.ReadAll(f)
		must(t, err)
		if string(got) != "hello" || id.Size != 5 {
			t.Errorf("read %q, identity %+v", got, id)
		}
		st, err := safefile.StatFile(f)
		must(t, err)
		if diff := cmp.Diff(id, st.Identity); diff != "" {
			t.Error(diff)
		}
		for rel, want := range map[string]error{
			"a/fifo":            safefile.ErrNotRegular,
			"a/b":               safefile.ErrNotRegular,
			"sock":              safefile.ErrNotRegular,
			"a/link":            safefile.ErrNotRegular,
			"a/linkdir/x.jsonl": safefile.ErrNotRegular,
			"outside/passwd":    safefile.ErrNotRegular,
			"secret/x":          safefile.ErrNotRegular,
			"none":              fs.ErrNotExist,
			"a/none/x":          fs.ErrNotExist,
			"":                  safefile.ErrName,
			"..":                safefile.ErrName,
			"a/../secret":       safefile.ErrName,
			"a//b":              safefile.ErrName,
			"/etc/passwd":       safefile.ErrName,
			"a\x00b":            safefile.ErrName,
		} {
			if f, _, err := r.Open(rel); !errors.Is(err, want) {
				t.Errorf("Open(%q) = %v, want %v", rel, err, want)
				f.Close()
			}
		}
	})
}

func TestOpenLeavesAccessTimeAlone(t *testing.T) {
	dir := realTemp(t)
	name := filepath.Join(dir, "x")
	write(t, name, "hello")
	old := time.Now().Add(-72 * time.Hour) // older than a day: relatime would update it
	must(t, os.Chtimes(name, old, old))
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	f, _, err := r.Open("x")
	must(t, err)
	_, err = io.ReadAll(f)
	must(t, err)
	f.Close()
	var st unix.Stat_t
	must(t, unix.Stat(name, &st))
	if st.Atim.Nano() != old.UnixNano() {
		t.Errorf("access time moved from %v to %v", old, time.Unix(0, st.Atim.Nano()))
	}
}

func TestOpenRootNamesTheLink(t *testing.T) {
	dir := realTemp(t)
	must(t, os.MkdirAll(filepath.Join(dir, "real/in"), 0o700))
	must(t, os.Symlink("real", filepath.Join(dir, "ln")))
	write(t, filepath.Join(dir, "file"), "")
	for path, want := range map[string]string{"ln": "ln", "ln/in": "ln", "ln/none": "ln"} {
		_, err := safefile.OpenRoot(filepath.Join(dir, path), safefile.RefuseLinks)
		var link *safefile.LinkError
		if !errors.As(err, &link) || link.Path != filepath.Join(dir, want) {
			t.Errorf("%s: %v, want the link %s", path, err, want)
		} else if strings.Contains(err.Error(), dir) {
			t.Errorf("the error's text shows a path: %v", err)
		}
	}
	r, err := safefile.OpenRoot(filepath.Join(dir, "ln/in"), safefile.FollowLinks)
	must(t, err)
	r.Close()
	for path, want := range map[string]error{
		filepath.Join(dir, "file"): safefile.ErrNotDirectory,
		filepath.Join(dir, "none"): fs.ErrNotExist,
		"relative":                 safefile.ErrName,
		dir + "/../x":              safefile.ErrName,
	} {
		for _, links := range []safefile.Links{safefile.RefuseLinks, safefile.FollowLinks} {
			if _, err := safefile.OpenRoot(path, links); !errors.Is(err, want) {
				t.Errorf("OpenRoot(%q, %d) = %v, want %v", path, links, err, want)
			}
		}
	}
	r, err = safefile.OpenRoot("/", safefile.RefuseLinks)
	must(t, err)
	must(t, r.Close())
}

func TestStatNeverFollows(t *testing.T) {
	dir := realTemp(t)
	write(t, filepath.Join(dir, "a/x"), "12345")
	must(t, os.Symlink("x", filepath.Join(dir, "a/link")))
	must(t, os.Symlink("a", filepath.Join(dir, "ln")))
	eachWay(t, dir, func(t *testing.T, r *safefile.Root) {
		for rel, want := range map[string]safefile.Type{"a/x": safefile.Regular, "a/link": safefile.Link, "a": safefile.Directory, ".": safefile.Directory} {
			got, err := r.Stat(rel)
			must(t, err)
			if got.Type != want {
				t.Errorf("Stat(%q).Type = %d, want %d", rel, got.Type, want)
			}
		}
		a, err := r.Stat("a/link")
		must(t, err)
		b, err := r.Peek("a/link")
		must(t, err)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Error(diff)
		}
		if _, err := r.Peek("a/x/y"); !errors.Is(err, safefile.ErrNotDirectory) {
			t.Errorf("Peek below a file: %v", err)
		}
		if _, err := r.Peek("a/../a/x"); !errors.Is(err, safefile.ErrName) {
			t.Errorf("Peek with ..: %v", err)
		}
		if _, err := r.Stat("ln/x"); !errors.Is(err, safefile.ErrNotDirectory) {
			t.Errorf("Stat through a link: %v", err)
		}
		if _, err := r.Stat("a/../a/x"); !errors.Is(err, safefile.ErrName) {
			t.Errorf("Stat with ..: %v", err)
		}
		sub, err := r.Sub("a")
		must(t, err)
		defer sub.Close()
		if sub.Path() != filepath.Join(dir, "a") {
			t.Errorf("Sub's path is %q", sub.Path())
		}
		a, err = sub.Stat("x")
		must(t, err)
		b, err = r.Stat("a/x")
		must(t, err)
		if diff := cmp.Diff(a, b); diff != "" || a.Size != 5 || a.Hard != 1 || a.Mode != 0o600 {
			t.Errorf("%+v differs: %s", a, diff)
		}
		if _, err := r.Sub("ln"); !errors.Is(err, safefile.ErrNotDirectory) {
			t.Errorf("Sub of a link: %v", err)
		}
	})
}

func TestReadDirTakesAnyName(t *testing.T) {
	dir := realTemp(t)
	write(t, filepath.Join(dir, "line\nfeed"), "")
	write(t, filepath.Join(dir, "bad\xff"), "")
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	must(t, os.Symlink("dir", filepath.Join(dir, "link")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	want := []safefile.Entry{
		{Name: "bad\xff", Type: safefile.Regular},
		{Name: "dir", Type: safefile.Directory},
		{Name: "fifo", Type: safefile.Other},
		{Name: "line\nfeed", Type: safefile.Regular},
		{Name: "link", Type: safefile.Link},
	}
	eachWay(t, dir, func(t *testing.T, r *safefile.Root) {
		got, id, err := r.ReadDir(".")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		st, err := r.Stat(".")
		must(t, err)
		if diff := cmp.Diff(st.Identity, id); diff != "" {
			t.Error(diff)
		}
		if _, _, err := r.ReadDir("link"); !errors.Is(err, safefile.ErrNotDirectory) {
			t.Errorf("ReadDir of a link: %v", err)
		}
	})
}

func TestReadDirManyEntries(t *testing.T) {
	dir := realTemp(t)
	const n = 3000 // more than one buffer
	for i := range n {
		write(t, filepath.Join(dir, strings.Repeat("n", 40)+strconv.Itoa(i)), "")
	}
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	got, _, err := r.ReadDir(".")
	must(t, err)
	if len(got) != n {
		t.Errorf("%d entries, want %d", len(got), n)
	}
}

func TestWriteFileAtomic(t *testing.T) {
	dir := realTemp(t)
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	write(t, filepath.Join(dir, "victim"), "untouched")
	must(t, os.Symlink("victim", filepath.Join(dir, "conf")))
	write(t, filepath.Join(dir, ".conf.0123456789abcdef.tmp"), "crashed long ago")
	old := time.Now().Add(-2 * time.Hour)
	must(t, os.Chtimes(filepath.Join(dir, ".conf.0123456789abcdef.tmp"), old, old))
	write(t, filepath.Join(dir, ".conf.fedcba9876543210.tmp"), "being written")

	must(t, r.WriteFileAtomic("conf", []byte("new"), 0o600))
	for name, want := range map[string]string{"conf": "new", "victim": "untouched"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	st, err := r.Stat("conf")
	must(t, err)
	if st.Type != safefile.Regular || st.Mode != 0o600 {
		t.Errorf("conf is %+v", st)
	}
	list, _, err := r.ReadDir(".")
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{".conf.fedcba9876543210.tmp", "conf", "victim"}, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"", ".", "..", "a/b"} {
		if err := r.WriteFileAtomic(name, nil, 0o600); !errors.Is(err, safefile.ErrName) {
			t.Errorf("WriteFileAtomic(%q) = %v", name, err)
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	if err := r.WriteFileAtomic("full", nil, 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".full.*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func BenchmarkStat(b *testing.B) {
	dir := realTemp(b)
	const n = 2000
	rels := make([]string, n)
	for i := range rels {
		rels[i] = "2026/11/30/rollout-2026-11-30T12-00-00-0199a0b2-1111-7222-8333-" + strconv.Itoa(100000000000+i) + ".jsonl"
		write(b, filepath.Join(dir, rels[i]), "")
	}
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(b, err)
	defer r.Close()
	b.Run("from the root", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := r.Stat(rels[i%n]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("peek", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := r.Peek(rels[i%n]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("from its directory", func(b *testing.B) {
		sub, err := r.Sub("2026/11/30")
		must(b, err)
		defer sub.Close()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if _, err := sub.Stat(rels[i%n][len("2026/11/30/"):]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
