//go:build unix

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
)

// TestKept finds every secret path and every repository, wherever it is, and nothing else.
func TestKept(t *testing.T) {
	root := t.TempDir()
	deep := strings.Repeat("d/", 60)
	for _, name := range []string{
		".env", "a/.env.local", "a/id_rsa", "node_modules/p/.npmrc", deep + "x.pem", ".ssh/config", ".ssh/id_rsa", "src/main.go", "README.md",
		".git/config", "sub/.git", ".git/modules/a/b/HEAD", ".git/modules/a/b/objects/x", ".git/modules/a/b/refs/x", ".git/worktrees/w/HEAD", ".git/worktrees/w/commondir",
		"bare/HEAD", "bare/objects/x", "bare/refs/x", "bare/.env", "half/HEAD", "half/objects/x", ".git/x/.env", ".git/refs/heads/v/secrets.x", ".dodo-x-0123456789abcdef/.env", "sub/deeper/.git/HEAD", "a/.env.local/../.env~", "home/.docker/config.json",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.WriteFile(filepath.Join(root, ".gitignore"), []byte("node_modules/\n.env\n"), 0o644),
		os.Symlink("src", filepath.Join(root, "b.pem")),
		syscall.Mkfifo(filepath.Join(root, "c.key"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	k, err := tree.Kept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) (list []string) {
		for _, n := range names {
			list = append(list, filepath.Join(tree.Root(), n))
		}
		return list
	}
	want := workspace.Kept{
		Secrets: at(".dodo-x-0123456789abcdef/.env", ".env", ".git/refs/heads/v/secrets.x", ".git/x/.env", ".ssh", "a/.env.local", "a/.env~", "a/id_rsa", "bare/.env", deep+"x.pem", "home/.docker/config.json", "node_modules/p/.npmrc"),
		Git:     at(".git", ".git/modules/a/b", ".git/worktrees/w", "bare", "sub/.git", "sub/deeper/.git"),
		Fixed:   at(".git/modules", ".git/modules/a", ".git/worktrees", "home", "home/.docker"),
	}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Error(diff)
	}
}

// TestGitDirectoriesOfAnyName: file tools reach nothing in a directory with the shape of a git
// directory, whatever its name, unless that is the workspace itself.
func TestGitDirectoriesOfAnyName(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"gg/HEAD", "gg/objects/x", "gg/refs/x", "gg/config", "deep/wt/commondir", "deep/wt/gitdir", "half/objects/x", "half/config", "half/HEAD"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for name, want := range map[string]bool{
		"gg": true, "gg/config": true, "gg/hooks/post-commit": true, "gg/none/x": true, "deep/wt/config.worktree": true, "deep/wt": true, "deep/x": false, "half/config": false, "half": false, "none/objects": false,
	} {
		p, err := workspace.ParsePath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.Access(p); errors.Is(err, contract.PathDenied) != want || (err != nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	var seen []string
	if err := tree.Walk(t.Context(), workspace.WalkOptions{Ignored: true}, func(v workspace.Visit) error {
		seen = append(seen, v.Path.String())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"deep", "deep/wt", "gg", "half", "half/HEAD", "half/config", "half/objects", "half/objects/x"}, seen); diff != "" {
		t.Error(diff)
	}
	// One that is the workspace is the owner's choice.
	bare, err := workspace.Open(filepath.Join(root, "gg"), workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	if p, _ := workspace.ParsePath("description"); bare.Access(p) != nil {
		t.Error("nothing in it can be reached")
	}
}
