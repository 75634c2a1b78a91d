package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/engine"
)

// inodes describes everything that reading or writing could change: mode, owner,
// links, size and all three times. It opens nothing but directories, and puts their
// access times back.
func inodes(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(name, &st); err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		atime := fmt.Sprint(st.Atim.Nano())
		if d.IsDir() {
			atime = "-" // this walk changes it
		}
		fmt.Fprintf(&b, "%q ino %d mode %o owner %d:%d links %d size %d atime %s mtime %d ctime %d\n",
			rel, st.Ino, st.Mode, st.Uid, st.Gid, st.Nlink, st.Size, atime, st.Mtim.Nano(), st.Ctim.Nano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Histories are only read: whatever is asked, no byte, mode, owner or time changes,
// not even the time of the last access.
func TestSourcesAreUntouched(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	histories := []string{".claude", ".codex", ".pi", ".omp", "incoming"}
	home := w.Path("histories") // apart, so that the whole tree can be compared
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range histories {
		if err := os.Rename(w.Path(name), filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.Set("HOME", home)
	// Shapes that invite repairs: a torn last line, a damaged one, odd modes, a link, and
	// permissions that somebody might want to "correct".
	torn := chats()[2]
	torn.rel = "histories/" + torn.rel
	w.start(torn, "A torn session.")
	w.add(torn.rel, "{broken\n"+torn.turn("cut")[:40])
	if err := os.Chmod(w.Path(torn.rel), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(home, ".pi/agent/sessions/link.jsonl")); err != nil {
		t.Fatal(err)
	}
	content := testenv.Fingerprint(t, home)
	// Access times from long ago: with them even a lazy file system notes a read.
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	err := filepath.WalkDir(home, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chtimes(name, old, st.ModTime())
	})
	if err != nil {
		t.Fatal(err)
	}
	before := inodes(t, home)
	same := func(what string) {
		t.Helper()
		if diff := cmp.Diff(before, inodes(t, home)); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", what, diff)
		}
	}
	c := w.serve()
	id := c.finds("ECONNRESET in parseManifestChunk").EvidenceID
	same("a first index")
	c.status()
	for _, x := range append(c.recall("retry").Candidates, engine.Candidate{EvidenceID: id}) {
		if in := c.inspect(x.EvidenceID); in.Outcome != engine.Verified {
			t.Errorf("%s", in.Text())
		}
	}
	same("recall and inspect")
	w.must(0, "rebuild")
	same("a rebuild")
	w.must(0, "source", "list")
	w.must(0, "forget", "--yes", "--evidence", id)
	w.must(0, "rebuild")
	same("a forget")
	c.CloseInput()
	if err := c.WaitExit(2 * time.Second); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(content, testenv.Fingerprint(t, home)); diff != "" {
		t.Errorf("contents changed:\n%s", diff)
	}
	// The state is closed to others.
	err = filepath.WalkDir(w.state(), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; st.Mode().Perm() != want {
			t.Errorf("%s has mode %v", d.Name(), st.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
