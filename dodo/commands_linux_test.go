package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/testenv"
)

// text is a member of an answer that is a text.
func (e envelope) text(name string) string {
	s, _ := e.Data[name].(string)
	return s
}

// runs runs a shell command to its end and gives what it wrote.
func (c *client) runs(command string) string {
	c.t.Helper()
	e := c.fine("run_command", fmt.Sprintf(`"command":%q`, command))
	if e.text("status") != "exited" || e.text("isolation") == "none" {
		c.t.Fatalf("%s: %v", command, e.Data)
	}
	return e.text("stdout") + e.text("stderr")
}

// TestCommands: what a client's model does all day, over both eras.
func TestCommands(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			m.Write(t, "work/Makefile", "hello:\n\t@echo made $(WHO)\n")
			c := m.speak(era, dir)
			if got := c.runs("echo one; echo two >&2; echo three > made.txt; pwd"); got != "one\n"+dir+"\ntwo\n" {
				t.Errorf("%q", got)
			}
			if m.read("work/made.txt") != "three\n" {
				t.Error("the command wrote nothing")
			}
			e := c.fine("run_command", `"command":"sleep 60","waitMs":1000`)
			id := e.text("jobId")
			if e.text("status") != "running" || id == "" {
				t.Fatalf("%v", e.Data)
			}
			if e := c.fine("job_cancel", fmt.Sprintf(`"jobId":%q`, id)); e.text("status") != "canceling" {
				t.Errorf("%v", e.Data)
			}
			if e := c.fine("job_wait", fmt.Sprintf(`"jobId":%q`, id)); e.text("status") != "canceled" {
				t.Errorf("%v", e.Data)
			}
			var task map[string]any
			for _, x := range c.fine("project_overview", "").Data["tasks"].([]any) {
				if x := x.(map[string]any); x["id"] == "make:hello" {
					task = x
				}
			}
			if task == nil {
				t.Fatal("the Makefile's target is no task")
			}
			run := fmt.Sprintf(`"taskId":"make:hello","recipeDigest":%q,"idempotencyKey":"a-key-of-mine"`, task["recipeDigest"])
			first := c.fine("run_task", run)
			done := c.fine("job_wait", fmt.Sprintf(`"jobId":%q`, first.text("jobId")))
			if done.text("status") != "exited" || done.text("stdout") != "made\n" && !strings.Contains(done.text("stderr"), "make") {
				t.Errorf("%v", done.Data)
			}
			if again := c.fine("run_task", run); again.text("jobId") != first.text("jobId") || again.Data["replayed"] != true {
				t.Errorf("%v", again.Data)
			}
			e = c.fine("run_command", `"command":"cat; echo read","stdin":true,"background":true`)
			id = e.text("jobId")
			c.fine("job_input", fmt.Sprintf(`"jobId":%q,"data":"given\n","closeStdin":true`, id))
			if e := c.fine("job_wait", fmt.Sprintf(`"jobId":%q`, id)); e.text("stdout") != "given\nread\n" {
				t.Errorf("%v", e.Data)
			}
			if e := c.fine("run_command", `"command":"test -t 0 && test -t 1 && tty","terminal":true`); e.Data["exitCode"] != 0.0 || !strings.Contains(e.text("stdout"), "/dev/pts/") {
				t.Errorf("%v", e.Data)
			}
			if e := c.call("run_command", `"command":"true","sandbox":false`); e.Error == nil || e.Error.Code != "FORBIDDEN" {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestACommandReachesNothingOfDodo: neither the owner's sockets nor the state, nor the server's
// environment, nor services of this machine; and it cannot approve what waits.
func TestACommandReachesNothingOfDodo(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.Set("VERY_SECRET_TOKEN", "hunter2")
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{}, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached <- struct{}{} })}
	go func() { _ = server.Serve(service) }()
	defer server.Close()
	// The program itself is in the workspace: a command may try to be the owner with it.
	program, err := os.ReadFile(built.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Executable(t, filepath.Join(dir, "owner"), program)
	c := m.speak("legacy", dir)
	if got := c.runs("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"); strings.Contains(got, "hunter2") || strings.Contains(got, "DODO_") {
		t.Errorf("the server's environment is there:\n%s", got)
	}
	state := m.Env()["DODO_CONFIG_DIR"]
	got := c.runs(fmt.Sprintf("ls %[1]s; cat %[1]s/config.json; DODO_CONFIG_DIR=%[1]s ./owner status --json; DODO_CONFIG_DIR=%[1]s ./owner stop; DODO_CONFIG_DIR=%[1]s ./owner trust --mode trusted --yes --root %[2]s; ls -d %[3]s %[3]s/.* ; true", state, dir, m.Path("")))
	if strings.Contains(got, "accessMode") || strings.Contains(got, `"pid"`) || !strings.Contains(got, "No such file") {
		t.Errorf("%s", got)
	}
	address := service.Addr().String()
	got = c.runs(fmt.Sprintf("exec 2>&1; (echo GET / HTTP/1.0; echo) | timeout 3 bash -c 'cat > /dev/tcp/%s'; timeout 3 curl -sS -m 2 http://%[2]s/; timeout 3 curl -sS -m 2 --noproxy '*' http://%[2]s/; true",
		strings.Replace(address, ":", "/", 1), address))
	select {
	case <-reached:
		t.Errorf("a service of this machine was reached: %s", got)
	default:
	}
	// What waits for the owner waits on, whatever a command says.
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "trust", "--mode", "inspect", "--root", dir)
	c.where = ""
	if e := c.call("run_command", `"command":"./owner approve apr_x"`); e.Error == nil || e.Error.Code != "APPROVAL_REQUIRED" {
		t.Errorf("%+v", e)
	}
}

// TestHooksSeeNoNewSecret: what is kept from a hook is what is secret when it starts, not what
// was when git ran last.
func TestHooksSeeNoNewSecret(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "config", "set", "gitHooks", "sandbox")
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "Ada"}, {"config", "user.email", "ada@example.com"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Skipf("git: %v %s", err, out)
		}
	}
	testenv.Executable(t, filepath.Join(dir, ".git/hooks/pre-commit"), []byte("#!/bin/sh\n{ echo ran; cat .env 2>/dev/null; } >seen\nexit 0\n"))
	m.Write(t, "work/new", "x\n")
	c := m.speak("legacy", dir)
	c.fine("git_status", "")
	m.Write(t, "work/.env", "PASSWORD=hunter2\n")
	c.fine("git_commit", `"message":"x","paths":["new"]`)
	if got := m.read("work/seen"); got != "ran\n" {
		t.Errorf("the hook saw %q", got)
	}
}

// TestJobsOutliveTheServer: of a server that was killed no command is left, what commands had
// written is still there, and nothing is run again.
func TestJobsOutliveTheServer(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	first := m.speak("legacy", dir)
	ended := first.fine("run_command", `"command":"echo kept; echo x >> count"`).text("jobId")
	runs := first.fine("run_command", `"command":"echo begun; echo x >> count; while :; do sleep 1; echo tick > beat; done","waitMs":1000`).text("jobId")
	if err := first.Cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.WaitExit(10 * time.Second)
	time.Sleep(300 * time.Millisecond)
	if err := os.RemoveAll(filepath.Join(dir, "beat")); err != nil {
		t.Fatal(err)
	}
	c := m.speak("legacy", dir)
	if e := c.fine("job_output", fmt.Sprintf(`"jobId":%q`, ended)); e.text("content") != "kept\n" {
		t.Errorf("%v", e.Data)
	}
	if e := c.fine("job_status", fmt.Sprintf(`"jobId":%q`, runs)); e.text("status") != "interrupted_on_restart" {
		t.Errorf("%v", e.Data)
	}
	if e := c.fine("job_output", fmt.Sprintf(`"jobId":%q`, runs)); e.text("content") != "begun\n" {
		t.Errorf("%v", e.Data)
	}
	time.Sleep(1500 * time.Millisecond)
	if _, err := os.Lstat(filepath.Join(dir, "beat")); err == nil {
		t.Error("the command goes on without its server")
	}
	if m.read("work/count") != "x\nx\n" {
		t.Errorf("%q", m.read("work/count"))
	}
	var list jobsOut
	m.ok(&list, "jobs", "--root", dir, "--json")
	if len(list.Jobs) != 2 || list.Jobs[0].ID != runs || list.Jobs[1].Status != "exited" {
		t.Errorf("%+v", list)
	}
	if r := m.dodo("jobs", "output", ended, "--root", dir); r.stdout != "kept\n" {
		t.Errorf("%+v", r)
	}
}

// TestOwnerCancelsAJob, from any directory.
func TestOwnerCancelsAJob(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	c := m.speak("legacy", dir)
	id := c.fine("run_command", `"command":"trap '' TERM; sleep 100","background":true`).text("jobId")
	var out canceledOut
	m.ok(&out, "jobs", "cancel", id, "--json")
	if out.ID != id || out.Status != "canceling" {
		t.Errorf("%+v", out)
	}
	if e := c.fine("job_wait", fmt.Sprintf(`"jobId":%q,"waitMs":20000`, id)); e.text("status") != "canceled" {
		t.Errorf("%v", e.Data)
	}
	if r := m.dodo("jobs", "cancel", id); r.status != 0 || !strings.Contains(r.stdout, "ended already") {
		t.Errorf("%+v", r)
	}
	if r := m.dodo("jobs", "cancel", "job_none"); r.status != 1 {
		t.Errorf("%+v", r)
	}
}

// TestShutdownEndsCommands within the two seconds that a server has, also those that do not
// want to.
func TestShutdownEndsCommands(t *testing.T) {
	for _, sandboxed := range []string{"prefer", "off"} {
		t.Run(sandboxed, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			m.ok(nil, "config", "set", "commandSandbox", sandboxed)
			c := m.speak("legacy", dir)
			c.fine("run_command", `"command":"trap '' TERM HUP INT; while :; do echo tick > beat; sleep 0.1; done","background":true`)
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Lstat(filepath.Join(dir, "beat")); err == nil {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the command does not begin")
				}
			}
			c.CloseInput()
			_ = c.WaitExit(mostToEnd)
			if err := os.Remove(filepath.Join(dir, "beat")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
			if _, err := os.Lstat(filepath.Join(dir, "beat")); err == nil {
				t.Error("the command goes on")
			}
		})
	}
}

// TestUnsafeIsTheOwnersWord: what is not confined says so.
func TestUnsafeIsTheOwnersWord(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "config", "set", "commandSandbox", "off")
	c := m.speak("legacy", dir)
	e := c.fine("run_command", `"command":"true"`)
	if e.text("isolation") != "none" || e.Data["sandboxed"] != false {
		t.Errorf("%v", e.Data)
	}
	if e := c.fine("run_command", `"command":"true","sandbox":true`); e.text("isolation") != "full" {
		t.Errorf("%v", e.Data)
	}
	if r := m.dodo("doctor"); !strings.Contains(r.stdout, "not confined") {
		t.Errorf("%+v", r)
	}
}
