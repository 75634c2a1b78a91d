package sqlitedb_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// Wherever the space ends, the fault says that the disk is full. The test runs again in a
// mount namespace with a disk of its own, which gets one size after the other.
func TestNoSizeOfDiskIsTakenForABrokenOne(t *testing.T) {
	if dir := os.Getenv("SQLITEDB_TINY_DISK"); dir != "" {
		for kib := 4; kib <= 256; kib += 12 {
			must(t, exec.CommandContext(t.Context(), "mount", "-o", "remount,size="+strconv.Itoa(kib)+"k", dir).Run())
			t.Run(strconv.Itoa(kib)+" KiB", func(t *testing.T) { fillDisk(t, dir) })
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for _, name := range []string{"unshare", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("there is no %s here", name)
		}
	}
	const noMount = "77"
	dir := t.TempDir()
	c := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o mode=700 tmpfs "$0" || exit `+noMount+`; exec "$@"`, dir, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1")
	c.Env = append(os.Environ(), "SQLITEDB_TINY_DISK="+dir)
	out, err := c.CombinedOutput()
	if c.ProcessState != nil && strconv.Itoa(c.ProcessState.ExitCode()) == noMount || strings.Contains(string(out), "unshare failed") {
		t.Skip("no disk can be mounted here")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// fillDisk does all that writes, until the disk is full.
func fillDisk(t *testing.T, dir string) {
	for _, bulk := range []bool{false, true} {
		path, spoiled := filepath.Join(dir, strconv.FormatBool(bulk)), false
		check := func(what string, err error) {
			t.Helper()
			if spoiled && errors.Is(err, sqlitedb.Damaged) {
				return // the first failure said why
			}
			if err != nil && (!errors.Is(err, sqlitedb.Full) || fault.From(err).Hint == "") {
				t.Errorf("bulk %t, %s: %s (%s): %v", bulk, what, err, fault.From(err).Code, errors.Unwrap(fault.From(err)))
			}
			spoiled = spoiled || bulk && err != nil
		}
		o := options()
		o.Bulk = bulk
		d, err := sqlitedb.Open(t.Context(), path, o)
		check("open", err)
		if err == nil {
			check("write", add(t.Context(), d, strings.Repeat("x", 60_000)))
			check("copy", d.CopyTo(t.Context(), path+".copy"))
			check("read", d.Read(t.Context(), func(c *sqlitedb.Conn) error {
				var n int
				_, err := c.Row(t.Context(), "SELECT count(*) FROM note", nil, &n)
				return err
			}))
			fill(t, path+".filler")
			if err := d.Room(); !errors.Is(err, sqlitedb.Full) {
				t.Errorf("room on a full disk: %v", err)
			}
			must(t, os.Remove(path+".filler"))
			check("close", d.Close())
		}
		for _, end := range []string{"", "-wal", "-shm", "-journal", ".copy"} {
			_ = os.Remove(path + end)
		}
	}
}

// fill takes what room there is.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	for page := make([]byte, 4096); ; {
		if _, err := f.Write(page); err != nil {
			return
		}
	}
}
