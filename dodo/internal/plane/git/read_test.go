package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/text"
	"localmcp/dodo/internal/plane/git"
	"localmcp/internal/fault"
)

// TestNoRepository: without one the reading operations say so, and a commit fails.
func TestNoRepository(t *testing.T) {
	w := newWorld(t, "tree")
	for _, name := range []string{"git_status", "git_diff", "git_log"} {
		if a := w.must(name, args{}); a.m["isRepo"] != false {
			t.Errorf("%s: %v", name, a.m)
		}
	}
	w.refused(contract.NotFound, "git_commit", args{"message": "x"})
	if err := os.Mkdir(filepath.Join(w.root, ".git"), 0o755); err != nil { // as git, an empty one is none
		t.Fatal(err)
	}
	if a := w.must("git_status", args{}); a.m["isRepo"] != false {
		t.Errorf("%v", a.m)
	}
}

// TestNeverOutsideTheSandbox: a service as it is made in the program asks for the walls.
func TestNeverOutsideTheSandbox(t *testing.T) {
	w := repo(t)
	w.git = git.New(w.git.Config)
	_, err := w.call("git_status", args{})
	if err != nil && !errors.Is(err, contract.NotSupported) {
		t.Errorf("%v", err)
	}
}

// shapes are repositories in many states.
var shapes = map[string]func(w *world){
	"clean": func(*world) {},
	"unborn": func(w *world) {
		os.RemoveAll(filepath.Join(w.root, ".git"))
		w.run("init", "-q")
		w.run("add", "README")
	},
	"unborn and nothing staged": func(w *world) {
		os.RemoveAll(filepath.Join(w.root, ".git"))
		w.run("init", "-q")
	},
	"sha256": func(w *world) {
		os.RemoveAll(filepath.Join(w.root, ".git"))
		w.run("init", "-q", "--object-format=sha256")
		w.run("add", ".")
		w.run("commit", "-qm", "first")
		w.write("README", "changed\n")
	},
	"changed": func(w *world) {
		w.write("README", "one\n2\nthree\n")
		w.write("new", "x\n")
		w.run("add", "new")
		w.write("new", "y\n")
		w.write("a/b/c", "untracked\n")
	},
	"names": func(w *world) {
		for _, n := range []string{"ünï/çödé", "with space", "tab\tin", "line\nbreak", `quo"te`, `back\slash`, "-dash", "--output=x", ":(exclude)x", "*", "a b/ c", "e\u0301", "bad\xff\xfe", "diff --git a/x b/x"} {
			w.write(n, "1\n")
		}
		w.run("add", "-A")
		w.run("commit", "-qm", "names")
		for _, n := range []string{"ünï/çödé", "with space", "tab\tin", "line\nbreak", `quo"te`, `back\slash`, "-dash", "--output=x", ":(exclude)x", "*", "a b/ c", "bad\xff\xfe", "diff --git a/x b/x"} {
			w.write(n, "2\n")
		}
		w.run("add", "with space")
		w.write("un\ntracked", "")
	},
	"renamed": func(w *world) {
		w.run("mv", "README", "READ ME")
		w.write("READ ME", "one\ntwo\nthree\nfour\n")
		w.write("big", strings.Repeat("line\n", 100))
		w.run("add", "big")
		w.run("commit", "-qm", "more")
		w.run("mv", "big", "sub ject")
		w.run("mv", "READ ME", `R"ME`)
	},
	"deleted and modes": func(w *world) {
		w.write("x", "x\n")
		w.write("y", "y\n")
		w.run("add", ".")
		w.run("commit", "-qm", "xy")
		os.Remove(filepath.Join(w.root, "x"))
		os.Chmod(filepath.Join(w.root, "y"), 0o755)
		w.run("rm", "-q", "README")
	},
	"binary and empty": func(w *world) {
		w.write("bin", "\x00\x01\x02")
		w.write("empty", "")
		w.run("add", ".")
		w.run("commit", "-qm", "b")
		w.write("bin", "\x00\x01\x03")
		w.write("bin2", "\x00")
		w.write("empty2", "")
		w.write("no end", "a\r\nb\xff\u202e")
		w.run("add", ".")
	},
	"links": func(w *world) {
		os.Symlink("README", filepath.Join(w.root, "link"))
		w.run("add", "link")
		w.run("commit", "-qm", "l")
		os.Remove(filepath.Join(w.root, "link"))
		os.Symlink("/etc/passwd", filepath.Join(w.root, "link"))
		os.Remove(filepath.Join(w.root, "README"))
		os.Symlink("x", filepath.Join(w.root, "README"))
	},
	"conflict": func(w *world) {
		w.run("checkout", "-qb", "other")
		w.write("README", "other\n")
		w.run("commit", "-qam", "other")
		w.run("checkout", "-q", "main")
		w.write("README", "mine\n")
		w.run("commit", "-qam", "mine")
		_, _ = w.try("merge", "-q", "other")
	},
	"detached": func(w *world) {
		w.run("checkout", "-q", "--detach")
		w.write("README", "d\n")
		w.run("commit", "-qam", "detached")
	},
	"upstream": func(w *world) {
		up := w.home.Path("up.git")
		w.run("clone", "-q", "--bare", ".", up)
		w.run("remote", "add", "origin", up)
		w.run("fetch", "-q")
		w.run("branch", "-q", "--set-upstream-to=origin/main")
		w.write("README", "ahead\n")
		w.run("commit", "-qam", "ahead")
	},
	"submodule": func(w *world) {
		sub := w.home.Path("sub")
		os.MkdirAll(sub, 0o755)
		for _, a := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "s1"}, {"commit", "-q", "--allow-empty", "-m", "s2"}} {
			if _, err := w.in(sub, a...); err != nil {
				w.t.Fatal(err)
			}
		}
		w.run("submodule", "--quiet", "add", sub, "sub")
		w.run("commit", "-qm", "sub")
		w.run("-C", "sub", "checkout", "-q", "HEAD~1")
	},
	"nested": func(w *world) {
		w.run("init", "-q", "nested")
		w.write("nested/x", "x")
		w.write("a/deep/file", "x")
	},
	"ignored": func(w *world) {
		w.write(".gitignore", "*.o\n/out/\n")
		w.write("x.o", "")
		w.write("out/y", "")
		w.write("sub/out/y", "")
	},
	"intent": func(w *world) { w.write("later", "x\n"); w.run("add", "-N", "later") },
	"split index": func(w *world) {
		w.run("update-index", "--split-index")
		w.write("n", "n\n")
		w.run("add", "n")
	},
	"sparse": func(w *world) {
		w.write("in/x", "x\n")
		w.write("off/y", "y\n")
		w.run("add", ".")
		w.run("commit", "-qm", "s")
		w.run("sparse-checkout", "set", "in")
		w.write("in/x", "xx\n")
	},
	"packed": func(w *world) { w.run("gc", "-q"); w.run("pack-refs", "--all"); w.write("README", "p\n") },
	"untracked cache": func(w *world) {
		w.run("update-index", "--untracked-cache")
		w.run("status")
		w.write("n", "n\n")
	},
	"configured": func(w *world) {
		for _, kv := range [][2]string{
			{"diff.noprefix", "true"}, {"diff.mnemonicPrefix", "true"}, {"diff.relative", "true"}, {"status.short", "true"}, {"status.relativePaths", "true"}, {"color.ui", "always"},
			{"diff.renames", "copies"}, {"core.quotePath", "false"}, {"diff.context", "9"}, {"log.date", "raw"}, {"format.pretty", "oneline"}, {"status.showUntrackedFiles", "no"},
			{"diff.submodule", "log"}, {"log.decorate", "full"}, {"diff.wsErrorHighlight", "all"}, {"log.showSignature", "true"}, {"diff.orderFile", "/nowhere"}, {"core.pager", "less"}, {"log.follow", "true"},
		} {
			w.run("config", kv[0], kv[1])
		}
		w.write("README", "one\n2\nthree\n")
		w.write("ü", "")
	},
}

// TestAsPlainGit holds status, diff and log against what git itself says in many states.
func TestAsPlainGit(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := repo(t)
			shape(w)
			index, _ := os.ReadFile(filepath.Join(w.root, ".git/index"))
			got, lines := w.must("git_status", args{}), w.status()
			diffs := map[bool]any{}
			for _, staged := range []bool{false, true} {
				diffs[staged] = w.must("git_diff", args{"staged": staged}).m["diff"]
			}
			if now, _ := os.ReadFile(filepath.Join(w.root, ".git/index")); string(now) != string(index) {
				t.Error("reading changed the index")
			}
			if want := w.plainStatus(); !slices.Equal(lines, want) {
				t.Errorf("status:\n%s", cmp.Diff(want, lines))
			}
			branch, _ := w.try("symbolic-ref", "-q", "--short", "HEAD")
			if b, _ := got.m["branch"].(string); b != strings.TrimSpace(branch) {
				t.Errorf("branch %q, want %q", b, branch)
			}
			if up, err := w.try("rev-parse", "--abbrev-ref", "@{u}"); err == nil {
				if got.m["upstream"] != strings.TrimSpace(up) || got.m["ahead"] != 1.0 || got.m["behind"] != 0.0 {
					t.Errorf("upstream: %v", got.m)
				}
			}
			for _, staged := range []bool{false, true} {
				if want := w.plainDiff(staged); diffs[staged] != want {
					t.Errorf("diff, staged %v:\n%s", staged, cmp.Diff(want, diffs[staged]))
				}
			}
			var log []string
			for _, c := range w.must("git_log", args{}).m["commits"].([]any) {
				c := c.(map[string]any)
				log = append(log, fmt.Sprint(c["sha"], " ", c["author"], " ", c["date"], " ", c["subject"]))
			}
			want, err := w.try("-c", "log.showSignature=false", "-c", "log.decorate=no", "log", "--format=%H %an %aI %s", "--no-color")
			if err != nil {
				want = ""
			}
			if got := strings.Join(log, "\n"); got != strings.TrimSpace(want) {
				t.Errorf("log:\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// plainStatus is what git itself says, by its older form.
func (w *world) plainStatus() (lines []string) {
	out := w.run("-c", "diff.orderFile=/dev/null", "status", "--porcelain", "-z", "-uall", "--ignore-submodules=dirty")
	f := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i < len(f) && f[i] != ""; i++ {
		xy, path := f[i][:2], visible(f[i][3:])
		switch {
		case slices.Contains([]string{"DD", "AU", "UD", "UA", "DU", "AA", "UU"}, xy):
			xy = "u:" + xy
		case strings.Contains(xy, "R"):
			path += "<" + visible(f[i+1])
			i++
		}
		lines = append(lines, strings.ReplaceAll(xy, " ", ".")+" "+path)
	}
	return lines
}

// visible writes bytes that are no text as paths are shown.
func visible(s string) string {
	return strings.NewReplacer("\xff", `\x{ff}`, "\xfe", `\x{fe}`).Replace(s)
}

func (w *world) plainDiff(staged bool) string {
	args := []string{
		"-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "diff.orderFile=/dev/null", "-c", "core.quotePath=false", "-c", "diff.relative=false",
		"diff", "--no-color", "-M", "-U3", "--submodule=short", "--ignore-submodules=dirty",
	}
	if staged {
		args = append(args, "--cached", "--diff-filter=ACDMRTXB")
	}
	var b strings.Builder
	for line := range strings.Lines(w.run(args...)) {
		if strings.Contains(line, "\xff") {
			line = text.Visible(line)
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestManyFiles: a status is bounded by entries, a diff by bytes, and both say so.
func TestManyFiles(t *testing.T) {
	w := repo(t)
	for i := range 3000 {
		w.write(fmt.Sprintf("d%d/f%d", i%50, i), "x\n")
	}
	a := w.must("git_status", args{})
	if n := len(a.m["entries"].([]any)); n != 500 || a.m["truncated"] != true || !a.truncated {
		t.Errorf("%d entries, %v", n, a.m["truncated"])
	}
	w.run("add", ".")
	a = w.must("git_diff", args{"staged": true})
	if d := a.m["diff"].(string); !a.truncated || len(d) < 30_000 || len(d) > 64<<10 || !strings.HasSuffix(d, "\n") {
		t.Errorf("%d bytes, truncated %v", len(d), a.truncated)
	}
	c := w.must("git_commit", args{"message": "many"})
	if c.m["filesChanged"] != 3000.0 || !c.truncated || len(c.m["stagedPaths"].([]any)) != 1000 {
		t.Errorf("%v files, %d shown", c.m["filesChanged"], len(c.m["stagedPaths"].([]any)))
	}
}

// TestSecretsAreLeftOut: secret files are counted and never shown, nor the name or the content
// of one that was renamed.
func TestSecretsAreLeftOut(t *testing.T) {
	w := repo(t)
	for i, n := range []string{".env", "plain.txt", "keys/id_rsa", "gone.pem"} {
		w.write(n, strings.Repeat(fmt.Sprintf("HIDDEN=value%d\n", i), 20))
	}
	w.run("add", "-f", ".")
	w.run("commit", "-qm", "secrets")
	w.run("mv", ".env", "shown.txt")
	w.run("mv", "plain.txt", "server.key")
	w.write("keys/id_rsa", "HIDDEN changed\n")
	w.write("README", "one\n2\nthree\n")
	os.Remove(filepath.Join(w.root, "gone.pem"))
	w.write("untracked.pem", "HIDDEN")
	want := []string{".M README", "D. plain.txt", "A. shown.txt"}
	got := w.status()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if n := w.must("git_status", args{}).m["filteredSecretPaths"]; n != 5.0 {
		t.Errorf("%v left out", n)
	}
	for _, staged := range []bool{false, true} {
		a := w.must("git_diff", args{"staged": staged})
		d := a.m["diff"].(string)
		for _, part := range []string{".env", "server.key", "id_rsa", "gone.pem", "-HIDDEN=value0", "HIDDEN=value2", "HIDDEN=value3", "HIDDEN changed"} {
			if strings.Contains(d, part) {
				t.Errorf("staged %v: %q is shown in\n%s", staged, part, d)
			}
		}
		if !has(a.warnings, "2 files were left out") {
			t.Errorf("staged %v: %q", staged, a.warnings)
		}
	}
	if d := w.must("git_diff", args{"staged": true}).m["diff"].(string); !strings.Contains(d, "shown.txt") || !strings.Contains(d, "deleted file") {
		t.Errorf("what is not secret is not shown:\n%s", d)
	}
	for _, path := range []string{".env", "keys/id_rsa", "sub/.ssh/x"} {
		w.refused(contract.SecretPathDenied, "git_diff", args{"paths": []string{path}})
		w.refused(contract.SecretPathDenied, "git_log", args{"path": path})
		w.refused(contract.SecretPathDenied, "git_commit", args{"message": "x", "paths": []string{path}})
	}
	w.refused(contract.SecretPathDenied, "git_commit", args{"message": "x"})
}

// TestArgumentsAreOnlyPaths: nothing that a caller names is taken for an option, a pattern or
// a place outside of the workspace.
func TestArgumentsAreOnlyPaths(t *testing.T) {
	w := repo(t)
	w.write("other", "x\n")
	w.run("add", "other")
	w.run("commit", "-qm", "other")
	w.write("README", "changed\n")
	w.write("other", "changed\n")
	hostile := []string{
		"--output=stolen", "-o", "--no-index", "--ext-diff", "--", "-", "-S", ":(exclude)other", ":!other", ":/", ":(top)", ":(glob)**", "*", "READM?", "[R]EADME", "HEAD", "main", "@{u}",
		"--open-files-in-pager=touch stolen", "--upload-pack=touch stolen", "HEAD:README", "^HEAD",
	}
	before := listing(t, w.home.Dir)
	for _, path := range hostile {
		w.refused(contract.NotFound, "git_diff", args{"paths": []string{path}})
		w.refused(contract.NotFound, "git_log", args{"path": path})
		w.refused(contract.NotFound, "git_commit", args{"message": "x", "paths": []string{path}})
	}
	if after := listing(t, w.home.Dir); after != before {
		t.Errorf("files came or went:\n%s", cmp.Diff(before, after))
	}
	// Nor where there is a file of that name, so that git is asked for its changes.
	for _, path := range hostile {
		w.write(path, "x\n")
	}
	before = listing(t, w.home.Dir)
	for _, path := range hostile {
		if d := w.must("git_diff", args{"paths": []string{path}}).m["diff"]; d != "" {
			t.Errorf("diff of %q: %s", path, d)
		}
		if l := w.must("git_log", args{"path": path}).m["commits"].([]any); len(l) != 0 {
			t.Errorf("log of %q: %v", path, l)
		}
	}
	for _, path := range []string{"../x", "/etc/passwd", "a\x00b", "a/../../b", "~/x", `a\b`, "", "C:/x"} {
		w.refused(contract.PathDenied, "git_diff", args{"paths": []string{path}})
		if path != "" {
			w.refused(contract.PathDenied, "git_log", args{"path": path})
		}
		w.refused(contract.PathDenied, "git_commit", args{"message": "x", "paths": []string{path}})
	}
	w.refused(contract.PathDenied, "git_diff", args{"paths": []string{".git/config"}})
	if after := listing(t, w.home.Dir); after != before {
		t.Errorf("files came or went:\n%s", cmp.Diff(before, after))
	}
	for _, message := range []string{"-F/etc/passwd", "--amend", "--", "a\n\n-x"} {
		w.write("README", message)
		if c := w.must("git_commit", args{"message": message, "paths": []string{"README"}}); c.m["filesChanged"] != 1.0 {
			t.Errorf("%v", c.m)
		}
		if got := w.run("log", "-1", "--format=%B"); strings.TrimSpace(got) != message {
			t.Errorf("message %q, want %q", got, message)
		}
	}
}

// listing are the names of files, without those of objects and of git's own tidying.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(p, "/objects") {
			return filepath.SkipDir
		}
		names = append(names, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, "\n")
}

// TestOthersWords: what others wrote is shown so that it is seen, and bounded.
func TestOthersWords(t *testing.T) {
	w := repo(t)
	w.run("-c", "user.name=Eve\x1b[31m\u202e", "commit", "-q", "--allow-empty", "-m", "hide\u200b\x1b]0;x\x07 "+strings.Repeat("é", 400))
	w.run("checkout", "-qb", "br\u202eanch")
	c := w.must("git_log", args{"limit": 1}).m["commits"].([]any)[0].(map[string]any)
	if c["author"] != `Eve\u{1b}[31m\u{202e}` || !strings.HasPrefix(c["subject"].(string), `hide\u{200b}\u{1b}]0;x\u{7} é`) || len([]rune(c["subject"].(string))) != 300 {
		t.Errorf("%q", c)
	}
	if b := w.must("git_status", args{}).m["branch"]; b != `br\u{202e}anch` {
		t.Errorf("%q", b)
	}
	w.write("README", "one\u202e\ntwo\nthree\n")
	if a := w.must("git_diff", args{}); !strings.Contains(a.m["diff"].(string), "one\u202e") || !has(a.warnings, "not seen") {
		t.Errorf("%v", a)
	}
}

// TestBrokenRepository: what git says of a broken repository reaches the caller bounded and
// visible.
func TestBrokenRepository(t *testing.T) {
	w := repo(t)
	w.write(".git/config", "[core\n\x1b[31m")
	f := w.refused(contract.InternalError, "git_status", args{})
	if s, _ := f.Detail["stderr"].(string); s == "" || strings.Contains(s, "\x1b") || len([]rune(s)) > 500 {
		t.Errorf("%v", f.Detail)
	}
	var none *fault.Error
	if !errors.As(error(f), &none) {
		t.Error(f)
	}
}

// TestVersion tells the versions of git that obey from those that do not.
func TestVersion(t *testing.T) {
	for version, want := range map[string]bool{
		"git version 2.39.5\n": true, "git version 2.32.0": true, "git version 3.0\n": true, "git version 2.50.1.windows.1\n": true, "git version 2.39.3 (Apple Git-146)\n": true,
		"git version 2.31.9\n": false, "git version 1.99.0\n": false, "": false, "git version x.y\n": false, "gut version 9.9\n": false,
	} {
		if got := git.Recent(version); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
