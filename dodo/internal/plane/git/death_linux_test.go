package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/plane/git"
	"localmcp/internal/testenv"
)

// TestCommitAfterADeath: what a process left that died in the middle is taken over; what looks
// like it and is held is not.
func TestCommitAfterADeath(t *testing.T) {
	w := repo(t)
	w.write("new", "n\n")
	const words = "dodo is making a commit\n"
	w.write(".git/index.lock", words)
	w.write(".git/dodo-candidate-0123456789abcdef", "half")
	w.write(".git/dodo-recovery-0123456789abcdef", "keep")
	held, err := os.Open(filepath.Join(w.root, ".git/index.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	w.refused(contract.Conflict, "git_commit", args{"message": "x", "all": true})
	held.Close()
	w.must("git_commit", args{"message": "x", "all": true})
	w.sound()
	if w.read(".git/dodo-recovery-0123456789abcdef") != "keep" {
		t.Error("what is to be looked at was removed")
	}
}

// TestCommitKilled: a process that dies in the middle leaves a repository that git can use and
// a commit goes on with.
func TestCommitKilled(t *testing.T) {
	if at := os.Getenv("DODO_TEST_DIE_AT"); at != "" { // the process that dies
		w := &world{t: t, home: testenv.NewHome(t), root: os.Getenv("DODO_TEST_ROOT")}
		w.serve(func(point string) error {
			if point == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		}, func(c *git.Config) { c.Home = os.Getenv("DODO_TEST_HOME") })
		_, err := w.call("git_commit", args{"message": "x", "all": true})
		t.Fatal("still here", err)
	}
	for _, at := range []string{"staged", "swapped", "led"} {
		t.Run(at, func(t *testing.T) {
			w := repo(t)
			w.write("new", "n\n")
			w.write("README", "changed\n")
			cmd := exec.Command(os.Args[0], "-test.run=^TestCommitKilled$")
			cmd.Env = append(os.Environ(), "DODO_TEST_DIE_AT="+at, "DODO_TEST_ROOT="+w.root, "DODO_TEST_HOME="+w.home.Dir)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v: %s", err, out)
			}
			if out, err := w.try("fsck", "--strict"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			want := map[string][]string{"staged": {".M README", "?? new"}, "swapped": {"M. README", "A. new"}, "led": nil}[at]
			if got := w.status(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			w.write("more", "m\n")
			w.must("git_commit", args{"message": "y", "all": true})
			w.sound()
			if got := w.status(); len(got) > 0 {
				t.Errorf("%q", got)
			}
		})
	}
}
