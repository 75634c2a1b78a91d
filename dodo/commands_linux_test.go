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

// asks makes a call whose answer nobody waits for yet.
func (c *client) asks(op, members string) (id string) {
	c.t.Helper()
	if c.where == "" {
		c.fine("list_jobs", "")
	}
	return c.Request("tools/call", c.params(fmt.Sprintf(`"name":%q,"arguments":{%s,%s}`, op, c.where, members)))
}

// until waits for a file of the workspace.
func (c *client) until(dir, file string) {
	c.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%s did not come\n%s", file, c.Stderr())
		}
	}
}

// TestCancelledCommand: a client that cancels its request leaves no command behind.
func TestCancelledCommand(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			c := m.speak(era, dir)
			id := c.asks("run_command", `"command":"touch up; sleep 600"`)
			c.until(dir, "up")
			c.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + c.params(`"requestId":`+id) + `}`)
			job := c.fine("list_jobs", `"limit":1`).Data["jobs"].([]any)[0].(map[string]any)["jobId"].(string)
			e := c.fine("job_wait", fmt.Sprintf(`"jobId":%q`, job))
			if e.text("status") != "canceled" || len(e.Warnings) == 0 || !strings.Contains(e.Warnings[0], "cancelled") {
				t.Errorf("%+v", e)
			}
			for _, r := range c.Rest() {
				if string(r.ID) == id {
					t.Errorf("it was answered: %s", r.Result)
				}
			}
		})
	}
}

// TestACommandReachesNothingOfDodo: neither the owner's sockets nor the state, nor the server's
// environment, nor services of this machine; and it cannot approve what waits. What it tries
// is shown to work where nothing is in its way.
func TestACommandReachesNothingOfDodo(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.Set("VERY_SECRET_TOKEN", "hunter2")
	// The program itself is in the workspace: a command may try to be the owner with it.
	program, err := os.ReadFile(built.Path(t))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Executable(t, filepath.Join(dir, "owner"), program)
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "trust", "--mode", "trusted", "--root", dir, "--yes")
	c := m.speak("legacy", dir)
	if got := c.runs("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'"); strings.Contains(got, "hunter2") || strings.Contains(got, "DODO_") || !strings.Contains(got, "PATH=") {
		t.Errorf("the server's environment is there, or none is:\n%s", got)
	}
	state := m.Env()["DODO_CONFIG_DIR"]
	got := c.runs(fmt.Sprintf("./owner version; ls %[1]s; cat %[1]s/config.json; DODO_CONFIG_DIR=%[1]s ./owner status --json; DODO_CONFIG_DIR=%[1]s ./owner stop; ls -d %[2]s %[2]s/.* ; true", state, m.Path("")))
	if strings.Contains(got, "accessMode") || strings.Contains(got, `"pid"`) || !strings.Contains(got, "No such file") || !strings.HasPrefix(got, "dodo ") {
		t.Errorf("%s", got)
	}

	// What waits for the owner waits on, whatever a command says that runs already.
	e := c.fine("run_command", fmt.Sprintf(`"background":true,"command":%q`, fmt.Sprintf("until [ -e waits ]; do sleep 0.1; done; ID=$(cat waits); export DODO_CONFIG_DIR=%s; "+
		"./owner approve $ID; ./owner approve --json $ID; ./owner trust --mode trusted --yes --root %[2]s; ./owner access-mode personal --yes; ./owner access-mode personal; echo tried $ID", state, dir)))
	runs := e.text("jobId")
	m.ok(nil, "trust", "--mode", "inspect", "--root", dir)
	c.where = ""
	write := `"path":"by-approval","content":"x"`
	asked := c.call("write_file", write)
	if asked.Error == nil || asked.Error.Code != "APPROVAL_REQUIRED" {
		t.Fatalf("%+v", asked)
	}
	id := asked.Error.Detail["approvalId"].(string)
	m.Write(t, "work/.waits", id)
	if err := os.Rename(filepath.Join(dir, ".waits"), filepath.Join(dir, "waits")); err != nil {
		t.Fatal(err)
	}
	done := c.fine("job_wait", fmt.Sprintf(`"jobId":%q,"waitMs":20000`, runs))
	if done.text("status") != "exited" || !strings.Contains(done.text("stdout"), "tried "+id) {
		t.Fatalf("%v", done.Data)
	}
	var trust trustOut
	m.ok(&trust, "trust", "--root", dir, "--json")
	if s := c.fine("approval_status", fmt.Sprintf(`"approvalId":%q`, id)); s.Data["status"] != "pending" || trust.Trust != "inspect" || trust.AccessMode != "managed" {
		t.Errorf("%v, %+v, after\n%v", s.Data, trust, done.Data)
	}
	if e := c.call("write_file", write); e.Error == nil || e.Error.Code != "APPROVAL_REQUIRED" {
		t.Errorf("%+v", e)
	}
	// The same program with the same words, outside of the walls.
	owner := exec.Command(filepath.Join(dir, "owner"), "approve", id)
	owner.Env, owner.Dir = m.Environ(), dir
	if r := finish(t, owner); r.status != 0 {
		t.Errorf("the owner cannot: %+v", r)
	}
}

// TestACommandReachesNoServiceOfThisMachine, neither by its address nor by the proxy that it
// has. What it tries reaches a service of its own.
func TestACommandReachesNoServiceOfThisMachine(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan string, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path })}
	go func() { _ = server.Serve(service) }()
	defer server.Close()
	address := service.Addr().String()
	if r, err := http.Get("http://" + address + "/control"); err != nil || <-reached != "/control" {
		t.Fatal(err)
	} else {
		r.Body.Close()
	}
	m.Write(t, "work/serve.pl", `use IO::Socket::INET;
$s = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1", LocalPort => 8123, ReuseAddr => 1) or die;
print "serves\n"; $| = 1;
while ($c = $s->accept) { print "own " . <$c>; print $c "HTTP/1.0 200 OK\r\n\r\n"; close $c }
`)
	c := m.speak("legacy", dir)
	script := `exec 2>&1
for tool in perl bash timeout curl; do command -v $tool >/dev/null && echo has $tool; done
rm -f log
perl serve.pl >log & server=$!
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do test -s log && break; sleep 0.1; done
for a in 127.0.0.1/8123 ` + strings.Replace(address, ":", "/", 1) + `; do
	u=http://${a%/*}:${a#*/}
	timeout 5 bash -c "exec 3<>/dev/tcp/$a; printf 'GET /bash HTTP/1.0\r\n\r\n' >&3; cat <&3"
	timeout 5 curl -sS -m 4 --noproxy '*' $u/curl
	timeout 5 curl -sS -m 4 $u/proxied
	timeout 5 curl -sS -m 4 --noproxy '' $u/asked
done
kill $server; cat log; true`
	for _, network := range []string{"false", "true"} {
		e := c.fine("run_command", fmt.Sprintf(`"network":%s,"command":%q`, network, script))
		got := e.text("stdout")
		if e.text("isolation") == "none" {
			t.Fatalf("%v", e.Data)
		}
		for _, tool := range []string{"bash", "curl"} {
			switch {
			case !strings.Contains(got, "has perl") || !strings.Contains(got, "has timeout") || !strings.Contains(got, "has "+tool):
				t.Logf("network %s: %s, perl or timeout is not there: nothing was shown with it", network, tool)
			case !strings.Contains(got, "own GET /"+tool+" "):
				t.Errorf("network %s: %s cannot reach what it may: %s", network, tool, got)
			}
		}
		// The owner hears by which setting it would reach it.
		warned := strings.Join(e.Warnings, " ")
		if asked := network == "true" && strings.Contains(got, "has curl"); strings.Contains(warned, "`dodo config set egressAllow '*' '") != asked || asked && !strings.Contains(warned, "'"+address+"'") {
			t.Errorf("network %s: %s", network, warned)
		}
		select {
		case path := <-reached:
			t.Errorf("network %s: a service of this machine was reached at %s: %s", network, path, got)
		default:
		}
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
	still(t, filepath.Join(dir, "beat"))
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
	other := m.dir("other")
	if r := m.dodo("jobs", "output", ended, "--root", other); r.status != 1 || !strings.Contains(r.stderr, "another workspace") || !strings.Contains(r.stderr, "--root "+dir) {
		t.Errorf("%+v", r)
	}
	if r := m.dodo("jobs", "output", "job_none", "--root", other); r.status != 1 || !strings.Contains(r.stderr, "no workspace has") || !strings.Contains(r.stderr, "dodo jobs --root") {
		t.Errorf("%+v", r)
	}
}

// still waits until nothing writes a file any more that a command writes once a second.
func still(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		there := false
		for quiet := time.Now().Add(2 * time.Second); !there && time.Now().Before(quiet); time.Sleep(20 * time.Millisecond) {
			_, err := os.Lstat(path)
			there = err == nil
		}
		if !there {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the command goes on without its server")
		}
	}
}

// TestJobsOutputGap: what is not kept of an output is said once, where it is missing.
func TestJobsOutputGap(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "config", "set", "limits.jobLogBytesPerJob", "1048576")
	c := m.speak("legacy", dir)
	id := c.fine("run_command", `"command":"echo first; yes 'some words on a line' | head -n 200000; echo last","waitMs":20000`).text("jobId")
	c.fine("job_wait", fmt.Sprintf(`"jobId":%q,"waitMs":20000`, id))
	for _, raw := range [][]string{nil, {"--raw"}} {
		r := m.dodo(append([]string{"jobs", "output", id, "--root", dir}, raw...)...)
		if r.status != 0 || !strings.HasPrefix(r.stdout, "first\n") || !strings.HasSuffix(r.stdout, "last\n") || len(r.stdout) < 500_000 {
			t.Errorf("%d, %d bytes", r.status, len(r.stdout))
		}
		if strings.Count(r.stderr, "not kept") != 1 || !strings.Contains(r.stderr, "dodo: bytes 32768 to ") {
			t.Errorf("%q", r.stderr)
		}
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
	if r := m.dodo("audit", "--json"); strings.Count(r.stdout, `"owner.job.cancel"`) != 2 || !strings.Contains(r.stdout, id) {
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

// TestDirectoriesOfSecretsStay: what is secret by the name of its directory does not become
// open when a command moves that, and the installation in a workspace does not when a
// directory above it is moved.
func TestDirectoriesOfSecretsStay(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "dodo-test-") // a short path, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{testenv.NewHome(t), t}
	for _, d := range []string{"user/i", ".docker", "conf/prod"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{".docker/config.json", "conf/prod/db.json"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m.Set("DODO_CONFIG_DIR", filepath.Join(dir, "user/i"))
	m.ok(nil, "config", "set", "secretDeny", "conf/prod/*")
	c := m.speak("legacy", dir)
	first := c.runs("mv .docker docker; mv conf conf2; mv conf/prod prod; mv user user2; ls user/i user2/i 2>&1; true")
	second := c.runs("cat docker/config.json conf2/prod/db.json conf/prod/db.json prod/db.json .docker/config.json 2>&1; find . -name state.db; true")
	if all := first + second; strings.Contains(all, "hunter2") || strings.Contains(all, "state.db") {
		t.Errorf("%s\n%s", first, second)
	}
	for _, d := range []string{"user/i", ".docker", "conf/prod"} {
		if _, err := os.Lstat(filepath.Join(dir, d)); err != nil {
			t.Error(err)
		}
	}
}

// TestGitIsNotRedirected: what would make the owner's git obey a command's files is not made,
// and of what stood in for it nothing is left.
func TestGitIsNotRedirected(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	m := newMachine(t)
	dir := m.workspace()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir, cmd.Env = dir, m.Environ()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-qm", "one")
	if err := os.RemoveAll(filepath.Join(dir, ".git/hooks")); err != nil {
		t.Fatal(err)
	}
	c := m.speak("legacy", dir)
	c.runs("mkdir fake; cp -r .git/. fake; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \"touch " + dir + "/PWNED; false\"\\n' > fake/config; echo ../fake > .git/commondir; " +
		"rm -f .git/commondir; mv .git old; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch " + dir + "/PWNED\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; cp fake/config .git/config.worktree; true")
	git("status")
	git("commit", "-q", "--allow-empty", "-m", "two")
	for _, name := range []string{"PWNED", "old", ".git/commondir", ".git/config.worktree", ".git/hooks/pre-commit"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if got := c.runs("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m three && git log --oneline | wc -l"); strings.TrimSpace(got) != "3" {
		t.Errorf("git does not work in commands: %s", got)
	}
}

// TestOverviewBelowARepository: a workspace that is a part of a repository is in one, for the
// overview as for git_status; git in a command does not see what is above.
func TestOverviewBelowARepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	m := newMachine(t)
	dir := m.workspace()
	if out, err := exec.Command("git", "init", "-q", filepath.Dir(dir)).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	c := m.speak("legacy", dir)
	status := c.fine("git_status", "").Data["isRepo"]
	if got := c.fine("project_overview", "").Data["git"].(map[string]any)["isRepo"]; got != status || got != true {
		t.Errorf("overview %v, git_status %v", got, status)
	}
}
