//go:build unix

package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/ground/workspace"
)

// TestKept finds every secret path and every repository, wherever it is, and nothing else.
func TestKept(t *testing.T) {
	root := t.TempDir()
	deep := strings.Repeat("d/", 60)
	for _, name := range []string{
		".env", "a/.env.local", "a/id_rsa", "node_modules/p/.npmrc", deep + "x.pem", ".ssh/config", ".ssh/id_rsa", "src/main.go", "README.md",
		".git/config", "sub/.git", "sub/deeper/.git/HEAD", "a/.env.local/../.env~", "home/.docker/config.json",
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
		Secrets: at(".env", ".ssh", "a/.env.local", "a/.env~", "a/id_rsa", deep+"x.pem", "home/.docker/config.json", "node_modules/p/.npmrc"),
		Git:     at(".git", "sub/.git", "sub/deeper/.git"),
		Fixed:   at("home", "home/.docker"),
	}
	if diff := cmp.Diff(want, k); diff != "" {
		t.Error(diff)
	}
}
