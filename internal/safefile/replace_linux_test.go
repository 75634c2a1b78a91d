package safefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localmcp/internal/safefile"
)

func TestCreateLike(t *testing.T) {
	dir := realTemp(t)
	model := filepath.Join(dir, "model")
	write(t, model, "old")
	must(t, os.Chmod(model, 0o751))
	labelled := unix.Setxattr(model, "user.label", []byte("kept"), 0) == nil
	if os.Geteuid() == 0 {
		must(t, os.Chown(model, 12345, 54321))
	}
	f, err := os.Open(model)
	must(t, err)
	defer f.Close()
	r, err := safefile.OpenRoot(dir, safefile.RefuseLinks)
	must(t, err)
	defer r.Close()
	d, err := r.OpenDir(".")
	must(t, err)
	defer d.Close()
	must(t, d.CreateLike("copy", []byte("new"), f))
	want, err := d.Stat("model")
	must(t, err)
	got, err := d.Stat("copy")
	must(t, err)
	if got.Mode != want.Mode || got.UID != want.UID || got.GID != want.GID || got.Size != 3 {
		t.Errorf("made %+v like %+v", got, want)
	}
	value := make([]byte, 10)
	if n, err := unix.Getxattr(filepath.Join(dir, "copy"), "user.label", value); labelled && (err != nil || string(value[:n]) != "kept") {
		t.Errorf("the attribute is %q (%v)", value[:max(n, 0)], err)
	}
	if err := d.CreateLike("copy", nil, f); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := d.CreateLike("a/b", nil, f); !errors.Is(err, safefile.ErrName) {
		t.Errorf("a path: %v", err)
	}
}

// TestLease: who writes is seen, and who is about to write waits until the lease ends.
func TestLease(t *testing.T) {
	name := filepath.Join(realTemp(t), "f")
	write(t, name, "text")
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	held, writers := safefile.Lease(f)
	if !held {
		if writers {
			t.Fatal("nobody writes, and yet somebody does")
		}
		t.Skip("this file system gives no leases")
	}
	if !safefile.Undisturbed(f) {
		t.Error("somebody waits, and there is nobody")
	}
	var opened atomic.Bool
	done := make(chan error)
	go func() {
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		opened.Store(true)
		if err == nil {
			err = w.Close()
		}
		done <- err
	}()
	for end := time.Now().Add(5 * time.Second); safefile.Undisturbed(f); {
		if time.Now().After(end) {
			t.Fatal("nobody waits for the lease")
		}
		time.Sleep(time.Millisecond)
	}
	if opened.Load() {
		t.Error("the file was opened for writing in spite of the lease")
	}
	safefile.EndLease(f)
	must(t, <-done)

	w, err := os.OpenFile(name, os.O_WRONLY, 0)
	must(t, err)
	if held, writers := safefile.Lease(f); held || !writers {
		t.Errorf("with a writer: held %v, writers %v", held, writers)
	}
	must(t, w.Close())
	if held, _ := safefile.Lease(f); !held {
		t.Error("no lease after the writer went")
	}
	safefile.EndLease(f)
}

func TestUmask(t *testing.T) {
	old := unix.Umask(0o027)
	defer unix.Umask(old)
	if got := safefile.Umask(); got != 0o027 {
		t.Errorf("the umask is %o", got)
	}
}
