package git_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"localmcp/dodo/internal/contract"
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
