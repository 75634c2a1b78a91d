package job_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/sqlitedb"
)

// childVar makes the test binary a dodo of its own: installation, root, helper and sandbox, joined by ":".
const childVar = "DODO_JOB_TEST_CHILD"

// TestMain is also the process that others kill: it runs jobs and waits.
func TestMain(m *testing.M) {
	place, child := os.LookupEnv(childVar)
	if !child {
		code := m.Run()
		helper.Remove()
		os.Exit(code)
	}
	testing.Init()
	parts := strings.Split(place, ":")
	dir, root := parts[0], parts[1]
	helperPath = func(testing.TB) string { return parts[2] }
	t := &fatal{}
	w := &world{t: t, dir: dir, root: root, lim: contract.DefaultLimits(), mode: sandbox.Mode(parts[3]), network: sandbox.NoNetwork}
	w.open()
	fmt.Println(w.call("run_command", obj{"command": "echo finished", "idempotencyKey": "finished1"}).str("jobId"))
	fmt.Println(w.background("#" + strings.Repeat("x", 20<<10) + "\necho $$ > pid; echo begun; exec sleep 600"))
	w.soon("its output", func() bool { _, err := os.Stat(filepath.Join(root, "pid")); return err == nil })
	keyed := w.call("exec_command", obj{"program": "sh", "args": []string{"-c", "echo $$ > pid2; exec sleep 600"}, "idempotencyKey": "12345678"}).str("jobId")
	w.soon("its start", func() bool { b, _ := os.ReadFile(filepath.Join(root, "pid2")); return len(b) > 0 })
	fmt.Println(keyed)
	time.Sleep(time.Hour)
}

// fatal is a test outside of a test.
type fatal struct{ testing.TB }

func (*fatal) Helper() {}
func (*fatal) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
func (f *fatal) Errorf(format string, args ...any) { f.Fatalf(format, args...) }

// another starts a second process with jobs, and gives their ids.
func (w *world) another() (c *exec.Cmd, finished, running, keyed string) {
	w.t.Helper()
	c = exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVar+"="+w.dir+":"+w.root+":"+helperPath(w.t)+":"+string(w.mode))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	must(w.t, err)
	must(w.t, c.Start())
	w.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewScanner(out)
	for _, id := range []*string{&finished, &running, &keyed} {
		if !lines.Scan() {
			w.t.Fatal("the second process said nothing")
		}
		*id = lines.Text()
	}
	return c, finished, running, keyed
}

// TestKilledServer: after kill -9 the output of jobs that ended is there, those that ran are
// marked and never run again, nothing to be run is left, and with walls no process either.
func TestKilledServer(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Require, sandbox.Off} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			killsServer(t, mode)
		})
	}
}

func killsServer(t *testing.T, mode sandbox.Mode) {
	w := newWorld(t)
	w.mode = mode
	c, finished, running, keyed := w.another()

	// While it lives, its jobs are to be seen from here, and only there to be ended.
	if d := w.call("job_status", obj{"jobId": running}); d.str("status") != "running" {
		t.Errorf("%v", d)
	}
	if got := w.all2(running); got != "begun\n" {
		t.Errorf("%q", got)
	}
	if d := w.call("job_wait", obj{"jobId": running, "waitMs": 1000}); d["exited"] != false || d.str("stdout") != "begun\n" {
		t.Errorf("%v", d)
	}
	for name, want := range map[string]string{"job_cancel": "its output can be read", "job_input": "only the server that started it"} {
		args := obj{"jobId": running}
		if name == "job_input" {
			args["data"] = "x"
		}
		_, err := w.try(name, args)
		if f := refused(t, err, contract.Conflict); !strings.Contains(f.Hint, want) || !strings.Contains(f.Hint, "dodo jobs cancel "+running) {
			t.Errorf("%s: %s", name, f.Hint)
		}
	}

	must(t, c.Process.Kill())
	_ = c.Wait()
	t.Cleanup(w.killLeft)
	if mode != sandbox.Off {
		w.gone()
	}
	// It is seen at once, by who looks and by who opens the workspace anew.
	if d := w.call("job_wait", obj{"jobId": running}); d.str("status") != "interrupted_on_restart" || d["exited"] != true || d.str("stdout") != "begun\n" {
		t.Errorf("%v", d)
	}
	w.reopen()
	w.noScripts()
	if d := w.call("job_status", obj{"jobId": keyed}); d.str("status") != "interrupted_on_restart" || d["endedAt"] == nil || d["exitCode"] != nil {
		t.Errorf("%v", d)
	}
	if got := w.all(finished, "stdout", 100); got != "finished\n" {
		t.Errorf("%q", got)
	}
	if d := w.call("job_cancel", obj{"jobId": running}); d.str("status") != "interrupted_on_restart" {
		t.Errorf("%v", d)
	}
	list, err := w.svc.List(context.Background(), 10)
	must(t, err)
	for _, j := range list {
		if j.Isolation == "" || j.Started.IsZero() {
			t.Errorf("how it ran is lost: %+v", j)
		}
		if alone := mode == sandbox.Off && j.ID != finished; alone != strings.Contains(fmt.Sprint(j.Notes), "may still run") {
			t.Errorf("%v", j.Notes)
		}
	}
	if len(list) != 3 {
		t.Errorf("%d jobs: one was run again", len(list))
	}
}

// TestInterruptedSaysWhatIsLeft: a job whose server is gone says what may still run, as far as it
// was noted how it was confined.
func TestInterruptedSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t)
	for isolation, want := range map[any]string{
		nil: "How it was confined was not noted", "none": "without the sandbox", "reduced": "without namespaces", "bwrap": "", "full": "",
	} {
		id := w.sh("true").str("jobId")
		must(t, w.state.Write(context.Background(), func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Exec(ctx, "UPDATE jobs SET status = 'running', ended = NULL, process = 'gone', notes = '[]', isolation = ? WHERE id = ?", isolation, id)
			return err
		}))
		d := w.call("job_status", obj{"jobId": id})
		notes := fmt.Sprint(d["notes"])
		if d.str("status") != "interrupted_on_restart" || !strings.Contains(notes, want) || strings.Contains(notes, "may still run") != (want != "") {
			t.Errorf("%v: %v", isolation, d)
		}
	}
}

// TestResidue: what belongs to no job any more is removed, and never run.
func TestResidue(t *testing.T) {
	w := newWorld(t)
	ended := w.sh("echo kept").str("jobId")
	stray := filepath.Join(w.dir, "jobs", "job_0000000000")
	must(t, os.Mkdir(stray, 0o700))
	for _, f := range []string{filepath.Join(stray, "script"), filepath.Join(stray, "stdout.0000000000000000"), filepath.Join(w.dir, "jobs", ended, "script")} {
		must(t, os.WriteFile(f, []byte("touch "+w.root+"/ran"), 0o600))
	}
	w.reopen()
	w.noScripts()
	if _, err := os.Stat(stray); !os.IsNotExist(err) {
		t.Error("output of no job is left")
	}
	if got := w.all(ended, "stdout", 100); got != "kept\n" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(w.root, "ran")); err == nil {
		t.Error("it was run")
	}
}

// killLeft ends what a killed process left: without walls nothing else does.
func (w *world) killLeft() {
	if w.mode != sandbox.Off {
		return
	}
	for _, file := range []string{"pid", "pid2"} {
		text, err := os.ReadFile(filepath.Join(w.root, file))
		must(w.t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		must(w.t, err)
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}
