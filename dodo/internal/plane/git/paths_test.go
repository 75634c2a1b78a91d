package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
)

// TestPathsThatMatchNothing are named; those of what went, is staged or is not tracked match.
func TestPathsThatMatchNothing(t *testing.T) {
	w := newWorld(t, "tree")
	w.run("init", "-q")
	w.write("first", "x\n")
	misspelt := func() {
		t.Helper()
		for name, a := range map[string]args{
			"git_diff":   {"paths": []string{"first", "no/such"}},
			"git_log":    {"path": "no/such"},
			"git_commit": {"message": "x", "paths": []string{"first", "no/such"}},
		} {
			if f := w.refused(contract.NotFound, name, a); f.Detail["path"] != "no/such" {
				t.Errorf("%s: %v", name, f.Detail)
			}
		}
	}
	misspelt() // before the first commit
	w.must("git_diff", args{"paths": []string{"first"}})
	w.must("git_log", args{"path": "first"})
	for _, name := range []string{"once", "dir/gone", "removed", "sub/deep/file"} {
		w.write(name, name+"\n")
	}
	w.run("add", ".")
	w.run("commit", "-qm", "all")
	w.run("rm", "-q", "once")
	w.run("commit", "-qm", "without once")
	misspelt()
	w.write("staged", "x\n")
	w.run("add", "staged")
	w.write("new", "x\n")
	w.run("rm", "-q", "removed") // of the index, too
	for _, name := range []string{"dir", "staged"} {
		if err := os.RemoveAll(filepath.Join(w.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".", "dir", "dir/gone", "removed", "staged", "new", "sub", "sub/deep"} {
		w.must("git_diff", args{"paths": []string{name}})
		w.must("git_log", args{"path": name})
	}
	if n := len(w.must("git_log", args{"path": "once"}).m["commits"].([]any)); n != 2 {
		t.Errorf("%d commits", n)
	}
	if f := w.refused(contract.NotFound, "git_diff", args{"paths": []string{"once", "first/x", "di", "sub"}}); fmt.Sprint(f.Detail["paths"]) != "[once first/x di]" || !strings.Contains(f.Msg, "at 3 of the paths") {
		t.Errorf("%s %v", f.Msg, f.Detail)
	}
	w.must("git_commit", args{"message": "x", "paths": []string{"dir", "removed", "new"}})
	w.sound()

	// In a part of a repository, too.
	w.root = filepath.Join(w.root, "sub")
	w.serve(nil)
	w.must("git_diff", args{"paths": []string{"deep"}})
	if f := w.refused(contract.NotFound, "git_diff", args{"paths": []string{"first"}}); f.Detail["path"] != "first" {
		t.Errorf("%v", f.Detail)
	}
}
