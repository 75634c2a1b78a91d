package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/workspace"
)

// TestStagesAreHiddenAndSwept: a stage has the name the journal was told, no caller sees it,
// and a sweep of its change removes it and no other.
func TestStagesAreHiddenAndSwept(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := workspace.ParsePath("f")
	ok(err)
	d, _, err := tree.Parent(p, false)
	ok(err)
	defer d.Close()
	one, two := workspace.StageName("cs_one", 1), workspace.StageName("cs_one2", 1)
	ok(d.WriteStage(one, []byte("first"), 0o640, nil))
	ok(d.WriteStage(two, []byte("other change"), 0o600, nil))
	if in, err := os.Stat(filepath.Join(root, one)); err != nil || in.Mode().Perm() != 0o640 {
		t.Errorf("the stage: %v, %v", in, err)
	}
	if err := d.WriteStage(one, nil, 0o600, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a stage that is there: %v", err)
	}
	hidden, err := workspace.ParsePath(one)
	ok(err)
	if err := tree.Access(hidden); !errors.Is(err, contract.PathDenied) {
		t.Errorf("a caller reaches a stage: %v", err)
	}
	ok(d.Restore(one, "f"))
	if err := d.Restore(two, "f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	ok(d.Withdraw("f", one))
	if err := d.Withdraw(".env", one); !errors.Is(err, contract.SecretPathDenied) {
		t.Errorf("a secret: %v", err)
	}
	ok(d.Sweep("cs_one"))
	list, err := os.ReadDir(root)
	ok(err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != two {
		t.Errorf("there are %q", got)
	}
}
