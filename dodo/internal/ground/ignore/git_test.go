package ignore_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/testenv"
)

// repository is a real git repository to hold the rules against.
type repository struct {
	dir  string
	home *testenv.Home
}

func newRepository(t testing.TB) *repository {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &repository{home: testenv.NewHome(t)}
	r.home.Set("GIT_CONFIG_NOSYSTEM", "1")
	r.dir = r.home.Path("tree")
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git(t, nil, "init", "-q")
	return r
}

func (r *repository) git(t testing.TB, in []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env, cmd.Stdin = r.home.Environ(), bytes.NewReader(in)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); err != nil && (args[0] != "check-ignore" || code != 1) {
		t.Fatalf("git %q: %v: %s", args, err, errs.Bytes())
	}
	return out
}

// plant makes files of the tree, and for a name with a slash at the end a directory.
func (r *repository) plant(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		full := filepath.Join(r.dir, name)
		dir := full
		if !strings.HasSuffix(name, "/") {
			dir = filepath.Dir(full)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir != full {
			r.write(t, name, "")
		}
	}
}

func (r *repository) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ignored asks git which of the paths are ignored.
func (r *repository) ignored(t testing.TB, paths []string) map[string]bool {
	t.Helper()
	out := r.git(t, []byte(strings.Join(paths, "\x00")+"\x00"), "check-ignore", "--no-index", "-z", "--stdin", "-v", "-n")
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(fields) != 4*len(paths) {
		t.Fatalf("git answered %d fields for %d paths", len(fields), len(paths))
	}
	verdict := map[string]bool{}
	for f := range slices.Chunk(fields, 4) {
		verdict[f[3]] = f[0] != "" && !strings.HasPrefix(f[2], "!")
	}
	return verdict
}

// compare holds the rules, by the directory of their file, against git for each path; a
// path with a slash at the end is a directory.
func (r *repository) compare(t testing.TB, files map[string]string, paths []string) {
	t.Helper()
	rules := map[string]*ignore.Rules{}
	for dir, text := range files {
		r.plant(t, dir+"/")
		r.write(t, filepath.Join(dir, ".gitignore"), text)
		rules[dir] = ignore.Parse([]byte(text), dir)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(p, "/")
	}
	want := r.ignored(t, names)
	for i, p := range paths {
		all := stack{rules[""]}
		for j := range len(names[i]) {
			if names[i][j] == '/' {
				all = append(all, rules[names[i][:j]])
			}
		}
		if got := all.ignored(names[i], strings.HasSuffix(p, "/")); got != want[names[i]] {
			t.Errorf("path %q: ignored is %v, git says %v; rules %q", p, got, want[names[i]], files)
		}
	}
}
