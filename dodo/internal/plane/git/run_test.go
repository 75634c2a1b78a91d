package git_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/plane/git"
	"localmcp/internal/testenv"
)

// fake is a repository whose git is a script. It answers what is asked before the operation
// itself as git does.
func fake(t *testing.T, script string) *world {
	w := repo(t)
	bin := w.home.Path("bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	testenv.Executable(t, filepath.Join(bin, "git"), []byte("#!/bin/sh\ncase \"$*\" in\n*version) echo git version 9.9.9; exit;;\n*config*) printf 'user.name\\nAda\\000user.email\\na@b\\000'; exit;;\nesac\n"+script+"\n"))
	w.serve(nil, func(c *git.Config) {
		box := sandbox.New(sandbox.Options{Path: append([]string{bin}, filepath.SplitList(os.Getenv("PATH"))...), Home: w.home.Dir, Helper: helper.Path(t)})
		c.Place = box.Place(w.root, w.home.Path("cache"), nil)
	})
	return w
}

// TestRunIsBounded: in time, in output and in what it complains of, with all that it started.
func TestRunIsBounded(t *testing.T) {
	w := fake(t, "sleep 60 & sleep 60")
	w.git.Patient(200 * time.Millisecond)
	begun := time.Now()
	if f := w.refused(contract.Timeout, "git_status", args{}); !f.Retryable || time.Since(begun) > 10*time.Second {
		t.Errorf("%v after %v", f, time.Since(begun))
	}
	w.git.Patient(time.Minute)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := w.git.Summary(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("a call that was given up: %v", err)
	}

	w = fake(t, "yes '? some/file' | head -c 30000000 | tr '\\n' '\\000'")
	if a := w.must("git_status", args{}); !a.truncated || len(a.m["entries"].([]any)) != 500 {
		t.Errorf("%d entries, truncated %v", len(a.m["entries"].([]any)), a.truncated)
	}
	w.refused(contract.ResourceLimit, "git_commit", args{"message": "x", "all": true})

	w = fake(t, "printf 'fatal: \\033[31m\\377 ' >&2; head -c 100000 /dev/zero | tr '\\000' x >&2; exit 3")
	f := w.refused(contract.InternalError, "git_status", args{})
	if s := f.Detail["stderr"].(string); !strings.HasPrefix(s, `fatal: \u{1b}[31m\x{ff} xxx`) || len(s) != 500 {
		t.Errorf("%q", s)
	}
}

// TestComplaintsAreMasked: keys in what git and hooks say do not reach the caller.
func TestComplaintsAreMasked(t *testing.T) {
	key := "ghp_" + strings.Repeat("a1B2", 9)
	w := fake(t, "echo 'fatal: https://"+key+"@example.com is not there' >&2; exit 3")
	f := w.refused(contract.InternalError, "git_status", args{})
	if s := f.Detail["stderr"].(string); strings.Contains(s, key) || !strings.Contains(s, "[masked: github token]") {
		t.Errorf("%q", s)
	}
	w = repo(t, func(c *git.Config) { c.Hooks = git.HooksSandbox })
	w.write("tools/pre-commit", "#!/bin/sh\necho "+key+"\nexit 1\n")
	if err := os.Chmod(filepath.Join(w.root, "tools/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.run("config", "core.hooksPath", "tools")
	f = w.refused(contract.Conflict, "git_commit", args{"message": "x", "all": true})
	if s := f.Detail["output"].(string); s != "[masked: github token]" {
		t.Errorf("%q", s)
	}
}

// TestHooksOfAnOldGit: before 2.36 git cannot run a hook, so none runs, and the commit is made.
func TestHooksOfAnOldGit(t *testing.T) {
	for says, run := range map[string]bool{"2.32.0": false, "2.35.8": false, "2.36.0": true, "3.0.0": true} {
		w := repo(t)
		w.write("tools/commit-msg", "#!/bin/sh\necho own >\"$1\"\n")
		if err := os.Chmod(filepath.Join(w.root, "tools/commit-msg"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.run("config", "core.hooksPath", "tools")
		real, err := exec.LookPath("git")
		if err != nil {
			t.Fatal(err)
		}
		bin := w.home.Path("bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		testenv.Executable(t, filepath.Join(bin, "git"), []byte("#!/bin/sh\ncase $2 in version) echo git version "+says+"; exit;; esac\nexec "+real+" \"$@\"\n"))
		w.serve(nil, func(c *git.Config) {
			box := sandbox.New(sandbox.Options{Path: append([]string{bin}, filepath.SplitList(os.Getenv("PATH"))...), Home: w.home.Dir, Helper: helper.Path(t)})
			c.Place, c.Hooks = box.Place(w.root, w.home.Path("cache"), nil), git.HooksSandbox
		})
		want := "x"
		if run {
			want = "own"
		}
		for range 2 { // it is looked at once and remembered
			w.write("a", w.run("rev-parse", "HEAD"))
			a := w.must("git_commit", args{"message": "x", "all": true})
			if a.m["subject"] != want || has(a.warnings, "older than 2.36") == run {
				t.Errorf("%s: %v, %q", says, a.m, a.warnings)
			}
		}
	}
}

// TestHooksPlace: hooks run in a place of their own, and nothing else does.
func TestHooksPlace(t *testing.T) {
	var asked int
	w := repo(t)
	w.write("tools/pre-commit", "#!/bin/sh\n")
	w.write("tools/commit-msg", "#!/bin/sh\n")
	for _, name := range []string{"tools/pre-commit", "tools/commit-msg"} {
		if err := os.Chmod(filepath.Join(w.root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.run("config", "core.hooksPath", "tools")
	w.serve(nil, func(c *git.Config) {
		box := sandbox.New(sandbox.Options{Path: filepath.SplitList(os.Getenv("PATH")), Home: w.home.Dir, Helper: helper.Path(t)})
		c.Hooks = git.HooksSandbox
		c.HooksPlace = box.Place(w.root, w.home.Path("cache"), func(context.Context) (sandbox.Kept, error) {
			asked++
			return sandbox.Kept{}, nil
		})
	})
	w.must("git_status", args{})
	if asked > 0 {
		t.Error("git itself runs there")
	}
	w.must("git_commit", args{"message": "x", "all": true})
	if asked < 2 {
		t.Errorf("asked %d times what is kept from two hooks", asked)
	}
}

// TestRunInTheBackground: what git leaves running does not keep the answer waiting.
func TestRunInTheBackground(t *testing.T) {
	w := fake(t, "sleep 60 & printf '? x\\000'")
	begun := time.Now()
	if a := w.must("git_status", args{}); len(a.m["entries"].([]any)) != 1 || time.Since(begun) > 10*time.Second {
		t.Errorf("%v after %v", a.m, time.Since(begun))
	}
}

// TestStrangeGit: a git that is missing, too old or another program altogether.
func TestStrangeGit(t *testing.T) {
	w := repo(t)
	bin := w.home.Path("bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	use := func(c *git.Config) {
		c.Place = sandbox.New(sandbox.Options{Path: []string{bin}, Helper: helper.Path(t)}).Place(w.root, w.home.Path("cache"), nil)
	}
	w.serve(nil, use)
	w.refused(contract.NotFound, "git_status", args{})
	for _, says := range []string{"git version 2.31.0", "hello"} {
		testenv.Executable(t, filepath.Join(bin, "git"), []byte("#!/bin/sh\necho "+says+"\n"))
		w.serve(nil, use)
		w.refused(contract.NotSupported, "git_status", args{})
	}
	testenv.Executable(t, filepath.Join(bin, "git"), []byte("#!/bin/sh\ncase $2 in version) echo git version 9.9.9;; esac; echo junk\n"))
	w.serve(nil, use)
	for _, name := range []string{"git_diff", "git_commit"} {
		if _, err := w.call(name, args{"message": "x"}); err == nil {
			t.Errorf("%s takes anything for an answer", name)
		}
	}
}

// TestSummary counts what a status lists.
func TestSummary(t *testing.T) {
	w := repo(t)
	w.write("README", "x\n")
	w.write("new", "")
	w.write(".env", "")
	s, err := w.git.Summary(context.Background())
	if err != nil || s != (git.Summary{IsRepo: true, Branch: "main", Dirty: 1, Untracked: 1}) {
		t.Errorf("%+v, %v", s, err)
	}
	var none *git.Service
	if got := none.Ops(); len(got) != 4 {
		t.Errorf("%d operations", len(got))
	}
}
