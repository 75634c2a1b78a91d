package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"localmcp/dodo/internal/contract"
)

const diskVar = "DODO_JOB_TINY_DISK"

// TestFullDisk: when the installation's disk is full, a job goes on to its end and says what
// is missing, and no call hangs. The test runs again in a mount namespace with a small disk.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(diskVar); dir != "" {
		onFullDisk(t, filepath.Join(dir, "small"), filepath.Join(dir, "root"))
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
		`mount -t tmpfs -o mode=700 tmpfs "$0" && mkdir "$0/small" "$0/root" && mount -t tmpfs -o mode=700,size=16m tmpfs "$0/small" || exit `+noMount+`; exec "$@"`,
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

func onFullDisk(t *testing.T, disk, root string) {
	dir := filepath.Join(disk, "state")
	must(t, os.MkdirAll(dir, 0o700))
	w := worldAt(t, dir, root)
	w.sh("true")
	id := w.background("sleep 0.5; yes | head -c 30000000; echo > done; echo end >&2")
	d := w.ended(id)
	notes := fmt.Sprint(w.call("job_status", obj{"jobId": id})["notes"])
	if d.num("exitCode") != 0 || d.num("stdoutBytes") < 1<<20 || !strings.Contains(notes, "could not be stored") {
		t.Errorf("%v %v", d, notes)
	}
	if _, err := os.Stat(filepath.Join(root, "done")); err != nil {
		t.Error(err)
	}
	// Nothing fits now: a job is refused with a way out, or runs.
	fill := filepath.Join(disk, "filler")
	f, err := os.Create(fill)
	must(t, err)
	var fs syscall.Statfs_t
	must(t, syscall.Fstatfs(int(f.Fd()), &fs))
	if n := int64(fs.Bavail) * fs.Bsize; n > 0 {
		must(t, syscall.Fallocate(int(f.Fd()), 0, 0, n))
	}
	must(t, f.Close())
	for _, command := range []string{"echo x", "#" + strings.Repeat("x", 100<<10)} {
		if _, err := w.try("run_command", obj{"command": command}); err != nil {
			if f := refused(t, err, contract.ResourceLimit); !f.Retryable {
				t.Errorf("%+v", f)
			}
		}
	}
	must(t, os.Remove(fill))
	if d := w.sh("echo again"); d.str("stdout") != "again\n" {
		t.Errorf("%v", d)
	}
}
