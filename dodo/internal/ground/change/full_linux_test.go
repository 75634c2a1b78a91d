package change_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"localmcp/dodo/internal/contract"
)

const diskVar = "DODO_CHANGE_TINY_DISK"

// TestFullDisk: wherever the space ends, the answer is RESOURCE_LIMIT or the change is whole,
// and no file is harmed. The test runs again in a mount namespace with small disks.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(diskVar); dir != "" {
		for _, c := range []struct{ name, state, root string }{
			{"the workspace's", "large", "small"}, {"the installation's", "small", "large"}, {"both", "small", "small"},
		} {
			t.Run(c.name, func(t *testing.T) {
				fillDisk(t, filepath.Join(dir, "small"), filepath.Join(dir, c.state), filepath.Join(dir, c.root))
			})
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
	dir := realTemp(t)
	c := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs -o mode=700 tmpfs "$0" && mkdir "$0/small" "$0/large" && mount -t tmpfs -o mode=700,size=48m tmpfs "$0/small" || exit `+noMount+`; exec "$@"`,
		dir, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.count", "1", "-test.v")
	c.Env = append(os.Environ(), diskVar+"="+dir)
	out, err := c.CombinedOutput()
	if c.ProcessState != nil && strconv.Itoa(c.ProcessState.ExitCode()) == noMount || strings.Contains(string(out), "unshare failed") {
		t.Skip("no disk can be mounted here")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func fillDisk(t *testing.T, small, state, root string) {
	state, root = filepath.Join(state, "state"), filepath.Join(root, "root")
	must(t, os.MkdirAll(state, 0o700))
	must(t, os.MkdirAll(root, 0o700))
	t.Cleanup(func() { must(t, os.RemoveAll(state)); must(t, os.RemoveAll(root)) })
	w := worldAt(t, state, root)
	ops := w.twenty()
	before := w.tree()
	filler := filepath.Join(small, "filler")
	limited, whole := 0, 0
	for free := 0; free <= 400<<10; free += 8 << 10 {
		plan := w.plan(ops)
		fill(t, filler, free)
		d, err := w.try("apply_changes", plan)
		now := w.visible()
		must(t, os.Remove(filler))
		must(t, w.svc.Reconcile(context.Background()))
		if err != nil {
			if f := refused(t, err, contract.ResourceLimit); f.Hint == "" || !f.Retryable {
				t.Errorf("with %d bytes free: %+v", free, f)
			}
			limited++
			same(t, before, now)
			same(t, before, w.tree())
		} else {
			whole++
			w.call("rollback_changes", obj{"changesetId": d["changesetId"], "idempotencyKey": "12345678"})
			same(t, before, w.tree())
		}
		if t.Failed() {
			t.Fatalf("with %d bytes free", free)
		}
	}
	t.Logf("%d refused, %d done", limited, whole)
	if limited == 0 || whole == 0 {
		t.Error("the sizes did not go from too small to large enough")
	}
}

// fill leaves this much room on a disk.
func fill(t *testing.T, name string, free int) {
	t.Helper()
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	var fs syscall.Statfs_t
	must(t, syscall.Fstatfs(int(f.Fd()), &fs))
	if n := int64(fs.Bavail)*fs.Bsize - int64(free); n > 0 {
		must(t, syscall.Fallocate(int(f.Fd()), 0, 0, n))
	}
}
