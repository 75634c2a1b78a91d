package sqlitedb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"localmcp/internal/fault"
)

// Whatever the file system says gets a code, and a disk without room is told from one
// that fails.
func TestWhatTheSystemSaysHasACode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code fault.Code
	}{
		{&fs.PathError{Op: "sync", Path: "/home/mara/x", Err: syscall.ENOSPC}, Full},
		{fmt.Errorf("deeper: %w", &fs.PathError{Op: "write", Path: "/home/mara/x", Err: syscall.EDQUOT}), Full},
		{errors.Join(errors.New("other"), os.NewSyscallError("fsync", syscall.EDQUOT)), Full},
		{&fs.PathError{Op: "sync", Path: "/home/mara/x", Err: syscall.EIO}, Unusable},
		{&fs.PathError{Op: "open", Path: "/home/mara/x", Err: syscall.EROFS}, Unusable},
	} {
		f := Failed(c.err, "it cannot be done")
		if f.Code != c.code || f.Hint == "" || !errors.Is(f, c.err) {
			t.Errorf("%v became %s: %s; %s", c.err, f.Code, f.Msg, f.Hint)
		}
	}
}

// A bulk file that cannot be flushed when it is closed is said to be unusable.
func TestFlushFailsWithACode(t *testing.T) {
	err := flush(filepath.Join(t.TempDir(), "gone"))
	if f := fault.From(err); f.Code != Unusable || f.Hint == "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Asking for room leaves nothing behind.
func TestAskForRoom(t *testing.T) {
	dir := t.TempDir()
	d := &DB{path: filepath.Join(dir, "x.sqlite")}
	if err := d.askForRoom(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := d.askForRoom(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
}
