package git_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// other makes a repository beside the workspace, with a file and a commit.
func (w *world) other(name string) string {
	w.t.Helper()
	dir := w.home.Path(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "theirs"), []byte("theirs\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	for _, a := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "theirs"}} {
		if _, err := w.in(dir, a...); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

func (w *world) outside() []string {
	w.t.Helper()
	list, err := w.git.Outside(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestLinkedWorktree: the workspace is a work tree of a repository elsewhere, which git gets
// to see.
func TestLinkedWorktree(t *testing.T) {
	w := newWorld(t, "parent")
	dir := w.other("main repo")
	w.root = w.home.Path("parent/tree")
	if _, err := w.in(dir, "worktree", "add", "-q", w.root, "-b", "side"); err != nil {
		t.Fatal(err)
	}
	w.serve(nil)
	if list := w.outside(); !slices.Equal(list, []string{filepath.Join(dir, ".git")}) {
		t.Errorf("outside: %q", list)
	}
	if a := w.must("git_status", args{}); a.m["branch"] != "side" {
		t.Errorf("%v", a.m)
	}
	w.write("mine", "x\n")
	w.write("theirs", "mine\n")
	w.must("git_commit", args{"message": "side", "all": true})
	w.sound()
	if got := w.last(); !slices.Equal(got, []string{"A mine", "M theirs"}) {
		t.Errorf("%q", got)
	}
	if n := len(w.must("git_log", args{}).m["commits"].([]any)); n != 2 {
		t.Errorf("%d commits", n)
	}
	if out, _ := w.in(dir, "status", "--porcelain"); out != "" {
		t.Errorf("the main work tree: %s", out)
	}

	// A merge in the main work tree is none in this one.
	if err := os.WriteFile(filepath.Join(dir, ".git/MERGE_HEAD"), []byte(w.run("rev-parse", "HEAD")), 0o644); err != nil {
		t.Fatal(err)
	}
	w.write("mine", "y\n")
	w.must("git_commit", args{"message": "side", "all": true})

	// In the workspace that is below the work tree, the pointer is above the root.
	w.write("sub/file", "x\n")
	w.root = filepath.Join(w.root, "sub")
	w.serve(nil)
	if got := w.status(); !slices.Equal(got, []string{"?? file"}) {
		t.Errorf("%q", got)
	}
}

// TestSubmoduleAsWorkspace: its git directory is in the repository above, and names it.
func TestSubmoduleAsWorkspace(t *testing.T) {
	w := newWorld(t, "super")
	dir := w.other("library")
	w.run("init", "-q")
	w.run("submodule", "--quiet", "add", dir, "lib")
	top := w.root
	w.root = filepath.Join(top, "lib")
	w.serve(nil)
	if list := w.outside(); !slices.Equal(list, []string{filepath.Join(top, ".git/modules/lib")}) {
		t.Errorf("outside: %q", list)
	}
	w.write("theirs", "changed\n")
	if got := w.status(); !slices.Equal(got, []string{".M theirs"}) {
		t.Errorf("%q", got)
	}
	w.must("git_commit", args{"message": "in lib", "all": true})
	w.sound()
}

// TestRepositoryAbove: only what is in the workspace is shown and committed.
func TestRepositoryAbove(t *testing.T) {
	w := repo(t)
	for _, n := range []string{"pkg/in", "pkg/move-out", "pkgs/beside", "pkg/deep/x", "move-in"} {
		w.write(n, strings.Repeat(n+"\n", 9))
	}
	w.write(".gitignore", "*.o\n")
	w.run("add", ".")
	w.run("commit", "-qm", "all")
	top := w.root
	w.root = filepath.Join(top, "pkg")
	w.serve(nil)
	if list := w.outside(); !slices.Equal(list, []string{filepath.Join(top, ".git"), filepath.Join(top, ".gitignore")}) {
		t.Errorf("outside: %q", list)
	}
	w.write("in", "changed\n")
	w.write("x.o", "")
	w.write("new", "new\n")
	w.write("../pkgs/beside", "changed\n")
	w.write("../untracked", "")
	if got := w.status(); !slices.Equal(got, []string{".M in", "?? new"}) {
		t.Errorf("%q", got)
	}
	d := w.must("git_diff", args{}).m["diff"].(string)
	if !strings.HasPrefix(d, "diff --git a/in b/in\n") || strings.Contains(d, "beside") {
		t.Errorf("%s", d)
	}
	if d := w.must("git_diff", args{"paths": []string{"deep", "in"}}).m["diff"].(string); !strings.HasPrefix(d, "diff --git a/in b/in\n") {
		t.Errorf("%s", d)
	}
	if n := len(w.must("git_log", args{}).m["commits"].([]any)); n != 1 {
		t.Errorf("%d commits: one changed the workspace", n)
	}
	w.must("git_commit", args{"message": "in", "paths": []string{"."}})
	w.sound()
	if got := w.last(); !slices.Equal(got, []string{"M pkg/in", "A pkg/new"}) {
		t.Errorf("%q", got)
	}
	if got := w.must("git_commit", args{"message": "deep", "paths": []string{func() string { w.write("deep/x", "y\n"); return "deep" }()}}).m["stagedPaths"]; len(got.([]any)) != 1 || got.([]any)[0] != "deep/x" {
		t.Errorf("%v", got)
	}

	// What others staged outside is not committed with it.
	w.run("add", "../pkgs/beside")
	w.write("in", "again\n")
	w.refused(contract.PathDenied, "git_commit", args{"message": "x", "all": true})
	if a := w.must("git_status", args{}); !has(a.warnings, "1 staged changes are outside") {
		t.Errorf("%q", a.warnings)
	}
	w.run("restore", "--staged", "../pkgs/beside")

	// Moves over the border are a file that comes and a file that goes.
	w.run("mv", "move-out", "../gone")
	w.run("mv", "../move-in", "here")
	got := w.status()
	slices.Sort(got)
	if !slices.Equal(got, []string{".M in", "A. here", "D. move-out"}) {
		t.Errorf("%q", got)
	}
	d = w.must("git_diff", args{"staged": true}).m["diff"].(string)
	if strings.Contains(d, "gone") || strings.Contains(d, "move-in b") || strings.Contains(d, "rename from") {
		t.Errorf("%s", d)
	}
}

// TestConflictBelow: a conflict is shown by the workspace's path, also where the repository is
// larger.
func TestConflictBelow(t *testing.T) {
	w := repo(t)
	w.write("pkg/file", "one\n")
	w.write("pkg/.env", "one\n")
	w.write("beside", "one\n")
	w.run("add", "-f", ".")
	w.run("commit", "-qm", "base")
	w.run("checkout", "-qb", "other")
	for _, n := range []string{"pkg/file", "pkg/.env", "beside"} {
		w.write(n, "theirs\n")
	}
	w.run("commit", "-qam", "theirs")
	w.run("checkout", "-q", "main")
	for _, n := range []string{"pkg/file", "pkg/.env", "beside"} {
		w.write(n, "mine\n")
	}
	w.run("commit", "-qam", "mine")
	_, _ = w.try("merge", "-q", "other")
	w.root = filepath.Join(w.root, "pkg")
	w.serve(nil)
	if got := w.status(); !slices.Equal(got, []string{"u:UU file"}) {
		t.Errorf("%q", got)
	}
	for _, paths := range [][]string{nil, {"file"}, {"."}} {
		a := w.must("git_diff", args{"paths": paths})
		if d := a.m["diff"].(string); !strings.HasPrefix(d, "diff --cc file\n") || !strings.Contains(d, "\n--- a/file\n+++ b/file\n") || strings.Contains(d, "env") || strings.Contains(d, "beside") || strings.Count(d, "diff ") != 1 {
			t.Errorf("%v:\n%s", paths, d)
		}
	}
	w.refused(contract.Conflict, "git_commit", args{"message": "x"})
}

// TestForgedPointers: a workspace cannot name another repository of the owner's as its own. A
// command in the sandbox can write all that is written here.
func TestForgedPointers(t *testing.T) {
	for name, c := range map[string]struct {
		forge func(w *world, other string)
		code  string
	}{
		"a pointer to another repository": {func(w *world, other string) { w.write(".git", "gitdir: "+other+"/.git\n") }, "PATH_DENIED"},
		"by a relative path":              {func(w *world, _ string) { w.write(".git", "gitdir: ../other/.git\n") }, "PATH_DENIED"},
		"a link": {func(w *world, other string) {
			if err := os.Symlink(other+"/.git", filepath.Join(w.root, ".git")); err != nil {
				w.t.Fatal(err)
			}
		}, "PATH_DENIED"},
		"a pointer through a link": {func(w *world, other string) {
			if err := os.Symlink(other, filepath.Join(w.root, "way")); err != nil {
				w.t.Fatal(err)
			}
			w.write(".git", "gitdir: way/.git\n")
		}, "PATH_DENIED"},
		"a common directory": {func(w *world, other string) {
			w.write(".git/HEAD", "ref: refs/heads/main\n")
			w.write(".git/commondir", other+"/.git\n")
		}, "PATH_DENIED"},
		"a common directory, as a work tree": {func(w *world, other string) {
			w.write(".git", "gitdir: g/worktrees/x\n")
			w.write("g/worktrees/x/HEAD", "ref: refs/heads/main\n")
			w.write("g/worktrees/x/gitdir", w.root+"/.git\n")
			w.write("g/worktrees/x/commondir", other+"/.git\n")
		}, "PATH_DENIED"},
		"the work tree of another": {func(w *world, other string) {
			if _, err := w.in(other, "worktree", "add", "-q", w.home.Path("linked")); err != nil {
				w.t.Fatal(err)
			}
			w.write(".git", "gitdir: "+other+"/.git/worktrees/linked\n")
		}, "PATH_DENIED"},
		"borrowed objects": {func(w *world, other string) {
			w.run("init", "-q")
			w.write(".git/objects/info/alternates", other+"/.git/objects\n")
		}, "NOT_SUPPORTED"},
		"dodo's own directory": {func(w *world, _ string) {
			w.other("installation")
			w.write(".git", "gitdir: ../installation/.git\n")
		}, "PATH_DENIED"},
		"nothing":        {func(w *world, _ string) { w.write(".git", "gitdir: nowhere\n") }, "PATH_DENIED"},
		"another file":   {func(w *world, _ string) { w.write(".git", "hello\n") }, "PATH_DENIED"},
		"a long pointer": {func(w *world, _ string) { w.write(".git", "gitdir: "+strings.Repeat("x", 100_000)) }, "RESOURCE_LIMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "tree")
			c.forge(w, w.other("other"))
			for _, op := range []string{"git_status", "git_diff", "git_log"} {
				f := w.refused(fault.Code(c.code), op, args{})
				if strings.Contains(f.Error()+f.Hint, w.home.Dir) {
					t.Errorf("a path of the owner's is shown: %v", f)
				}
			}
			w.refused(fault.Code(c.code), "git_commit", args{"message": "x", "all": true})
		})
	}
}

// TestPointerInside: a git directory elsewhere in the workspace needs no proof.
func TestPointerInside(t *testing.T) {
	w := newWorld(t, "tree")
	w.run("init", "-q", "--separate-git-dir", filepath.Join(w.root, "store"))
	w.write("a", "a\n")
	w.must("git_commit", args{"message": "x", "paths": []string{"a"}})
	w.sound()
	if list := w.outside(); len(list) > 0 {
		t.Errorf("outside: %q", list)
	}
}

// TestWorkTreeElsewhere: what a repository says of where its work tree is has no effect.
func TestWorkTreeElsewhere(t *testing.T) {
	w := repo(t)
	dir := w.other("other")
	w.run("config", "core.worktree", dir)
	if got := w.status(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	w.write("new", "x\n")
	w.must("git_commit", args{"message": "x", "all": true})
	w.run("config", "--unset", "core.worktree")
	w.run("config", "core.bare", "true")
	w.write("new", "y\n")
	if got := w.status(); !slices.Equal(got, []string{".M new"}) {
		t.Errorf("%q", got)
	}
}
