package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

func TestRunCommand(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Require, sandbox.Off} {
		t.Run(string(mode), func(t *testing.T) { runsCommands(t, mode) })
	}
}

func runsCommands(t *testing.T, mode sandbox.Mode) {
	w := newWorld(t)
	w.mode = mode
	must(t, os.Mkdir(filepath.Join(w.root, "sub"), 0o755))
	d := w.call("run_command", obj{"command": "pwd; echo bad >&2; exit 3", "cwd": "sub"})
	if d.str("stdout") != filepath.Join(w.root, "sub")+"\n" || d.str("stderr") != "bad\n" || d.num("exitCode") != 3 || d.str("status") != "exited" ||
		d["signal"] != nil || d["stdoutTruncated"] != false || d.num("stderrBytes") != 4 || d["replayed"] != false {
		t.Errorf("%v", d)
	}
	if want := mode != sandbox.Off; d["sandboxed"] != want || d.str("isolation") == "" {
		t.Errorf("sandboxed %v, isolation %v", d["sandboxed"], d["isolation"])
	}
	s := w.call("job_status", obj{"jobId": d["jobId"]})
	if s.str("program") != "/bin/sh" || s.str("kind") != "exec" || s.str("cwd") != "sub" || s["startedAt"] == nil || s["endedAt"] == nil || s.num("timeoutMs") != 600000 {
		t.Errorf("%v", s)
	}
	if d := w.sh("kill -9 $$"); d.str("signal") != "SIGKILL" || d["exitCode"] != nil {
		t.Errorf("%v", d)
	}
}

// Case 41: a command waits for input: it is at its end at once.
//
// TestStdinIsAtItsEnd: what waits for input does not wait (user-pain 88, 90; case 41).
func TestStdinIsAtItsEnd(t *testing.T) {
	w := newWorld(t)
	if d := w.sh("cat; read x; echo \"got <$x> $?\"; test -t 0 || echo no terminal"); d.str("stdout") != "got <> 1\nno terminal\n" && d.str("stdout") != "got <> 0\nno terminal\n" {
		t.Errorf("%v", d)
	}
	_, err := w.try("job_input", obj{"jobId": w.background("sleep 5"), "data": "x"})
	refused(t, err, contract.Conflict)
}

// Case 48: the server's environment has tokens and sockets: not in the command's.
//
// TestEnvironment: commands get what is on the list and nothing of the server.
func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"HOME=/somewhere", "LANG=de_DE.UTF-8", "API_KEY=secret", "DODO_TOKEN=secret", "LD_PRELOAD=/evil.so", "ALLOWED=yes", "NODE_OPTIONS=x", "PATH=/evil", "TERM=xterm", "broken"}
	w.allow = []string{"ALLOWED", "DODO_TOKEN", "LD_PRELOAD"}
	w.reopen()
	out := w.sh("env").str("stdout")
	for _, want := range []string{"LANG=de_DE.UTF-8\n", "ALLOWED=yes\n", "TERM=dumb\n", "GIT_TERMINAL_PROMPT=0\n", "PATH=" + w.place.Path() + "\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	for _, not := range []string{"secret", "evil", "NODE_OPTIONS"} {
		if strings.Contains(out, not) {
			t.Errorf("%q is in %s", not, out)
		}
	}
}

// TestRefusals: what cannot be run is refused before anything is started.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.lim.JobWallTimeoutMaxMs = 60000
	w.reopen()
	w.write("plain.txt", "text", 0o644)
	w.write(".env", "KEY=1", 0o644)
	w.write("broken", "#!/no/such/interpreter\n", 0o755)
	must(t, os.Symlink("/tmp", filepath.Join(w.root, "link")))
	big := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct {
		op   string
		args obj
		code fault.Code
	}{
		"NUL in the text":       {"run_command", obj{"command": "echo a\x00b"}, contract.InvalidInput},
		"no directory":          {"run_command", obj{"command": "true", "cwd": "missing"}, contract.NotFound},
		"a file as directory":   {"run_command", obj{"command": "true", "cwd": "plain.txt"}, contract.PathDenied},
		"a link as directory":   {"run_command", obj{"command": "true", "cwd": "link"}, contract.PathDenied},
		"outside":               {"run_command", obj{"command": "true", "cwd": "../.."}, contract.PathDenied},
		"git's directory":       {"run_command", obj{"command": "true", "cwd": ".git"}, contract.PathDenied},
		"too large":             {"run_command", obj{"command": strings.Repeat("x", 1<<20+1)}, contract.ResourceLimit},
		"too long":              {"run_command", obj{"command": "true", "timeoutMs": 60001}, contract.InvalidInput},
		"no program":            {"exec_command", obj{"program": "no-such-program-here", "idempotencyKey": "12345678"}, contract.NotFound},
		"NUL in an argument":    {"exec_command", obj{"program": "echo", "args": []string{"a\x00b"}, "idempotencyKey": "12345678"}, contract.InvalidInput},
		"NUL in the program":    {"exec_command", obj{"program": "ec\x00ho", "idempotencyKey": "12345678"}, contract.InvalidInput},
		"a long argument":       {"exec_command", obj{"program": "echo", "args": []string{strings.Repeat("ü", 40<<10)}, "idempotencyKey": "12345678"}, contract.ResourceLimit},
		"long arguments":        {"exec_command", obj{"program": "echo", "args": []string{big, big, big}, "idempotencyKey": "12345678"}, contract.ResourceLimit},
		"an absolute program":   {"exec_command", obj{"program": "/bin/echo", "idempotencyKey": "12345678"}, contract.PathDenied},
		"a program outside":     {"exec_command", obj{"program": "../echo", "idempotencyKey": "12345678"}, contract.PathDenied},
		"no permission":         {"exec_command", obj{"program": "./plain.txt", "idempotencyKey": "12345678"}, contract.PathDenied},
		"a secret program":      {"exec_command", obj{"program": "./.env", "idempotencyKey": "12345678"}, contract.SecretPathDenied},
		"no interpreter":        {"exec_command", obj{"program": "./broken", "idempotencyKey": "12345678"}, contract.NotFound},
		"one of several is bad": {"run_commands", obj{"commands": []obj{{"command": "touch started"}, {"command": "a\x00"}}}, contract.InvalidInput},
		"no such job":           {"job_status", obj{"jobId": "job_0000000000"}, contract.JobNotFound},
		"no task":               {"run_task", obj{"taskId": "npm:x", "recipeDigest": "sha256:x", "idempotencyKey": "12345678"}, contract.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.try(c.op, c.args)
			refused(t, err, c.code)
		})
	}
	if _, err := os.Stat(filepath.Join(w.root, "started")); err == nil {
		t.Error("one of several was started")
	}
	list := w.call("list_jobs", obj{})["jobs"].([]any)
	if len(list) != 1 || data(list[0].(map[string]any)).str("status") != "failed_to_start" {
		t.Errorf("%v", list)
	}
}

// TestLessSandboxIsRefused: a caller asks for more walls, never for fewer.
func TestLessSandboxIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, mode := range []sandbox.Mode{sandbox.Require, sandbox.Prefer} {
		w.mode = mode
		_, err := w.try("run_command", obj{"command": "true", "sandbox": false})
		refused(t, err, contract.Forbidden)
	}
	w.mode = sandbox.Off
	if d := w.call("run_command", obj{"command": "echo x", "sandbox": false}); d.str("isolation") != "none" || d["sandboxed"] != false {
		t.Errorf("%v", d)
	}
	// What is asked for is had or the command does not run.
	for _, more := range []obj{{"sandbox": true}, {"network": false}} {
		more["command"] = "echo x"
		d, err := w.try("run_command", more)
		if err != nil {
			if !errors.Is(err, contract.NotSupported) {
				t.Error(err)
			}
		} else if d["sandboxed"] != true {
			t.Errorf("%v: %v", more, d)
		}
	}
}

// TestEarlyReturn: a call comes back while its command runs, and says how to go on; the job
// goes on without its caller (user-pain 87).
func TestEarlyReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const command = "echo begun; " + untilOn + "; echo ended"
	d := w.call("run_command", obj{"command": command, "waitMs": 1000})
	if d.str("status") != "running" || !strings.HasPrefix("begun\n", d.str("stdout")) || d.num("stdoutBytes") != len(d.str("stdout")) || !strings.Contains(d.str("next"), "job_wait") {
		t.Errorf("%v", d)
	}
	w.on()
	if d := w.ended(d.str("jobId")); d.str("stdout") != "begun\nended\n" || d.num("exitCode") != 0 {
		t.Errorf("%v", d)
	}
	must(t, os.Remove(filepath.Join(w.root, "on")))
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	r, err := w.do(ctx, client, "run_command", obj{"command": command})
	must(t, err)
	if d = decode(t, r.Data); d.str("status") != "running" {
		t.Errorf("%v", d)
	}
	w.on()
	if d := w.ended(d.str("jobId")); d.str("stdout") != "begun\nended\n" {
		t.Errorf("%v", d)
	}
}

// TestTakenBack: who cancels the call that started a command, and does not know its id yet,
// ends it; who has the id does not, whatever becomes of the call that only waits.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	back := func(name string, args obj) {
		t.Helper()
		must(t, os.Remove(filepath.Join(w.root, "up")))
		ctx, cancel := context.WithCancelCause(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := w.do(ctx, client, name, args)
			done <- err
		}()
		if name != "job_wait" {
			w.soon("its start", func() bool { _, err := os.Stat(filepath.Join(w.root, "up")); return err == nil })
		}
		cancel(op.ErrWithdrawn)
		must(t, <-done)
	}
	last := func(n int) (all []data) {
		for _, j := range w.call("list_jobs", obj{"limit": n})["jobs"].([]any) {
			all = append(all, w.call("job_status", obj{"jobId": j.(map[string]any)["jobId"]}))
		}
		return all
	}
	w.write("up", "", 0o644)
	back("run_command", obj{"command": "touch up; sleep 600"})
	back("run_commands", obj{"commands": []obj{{"command": "sleep 600"}, {"command": "sleep 0.2; touch up; sleep 600"}}})
	for _, j := range last(3) {
		if j.str("status") != "canceled" || !strings.Contains(fmt.Sprint(j["notes"]), "cancelled") {
			t.Errorf("%v", j)
		}
	}
	id := w.background("sleep 600")
	back("job_wait", obj{"jobId": id})
	if j := last(1)[0]; j.str("jobId") != id || j.str("status") != "running" {
		t.Errorf("%v", j)
	}
	w.call("job_cancel", obj{"jobId": id})
}

// TestProgress: who waits hears of it, also for those of a batch that take longest.
func TestProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.svc.ReportEvery(20 * time.Millisecond)
	for name, args := range map[string]obj{
		"run_command":  {"command": untilOn},
		"run_commands": {"commands": []obj{{"command": "true"}, {"command": untilOn}}},
	} {
		before := w.reports.Load()
		go func() {
			for deadline := time.Now().Add(20 * time.Second); w.reports.Load() < before+12 && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
			w.on()
		}()
		w.call(name, args)
		if n := w.reports.Load() - before; n < 12 {
			t.Errorf("%s: %d reports", name, n)
		}
		must(t, os.Remove(filepath.Join(w.root, "on")))
	}
}

// TestTimeout: what takes too long is ended, with what it started and what ignores that.
func TestTimeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.call("run_command", obj{"command": "sleep 60 & echo $! > pid; wait", "timeoutMs": 1000})
	if d.str("status") != "timed_out" || d.str("signal") == "" {
		t.Errorf("%v", d)
	}
	w.gone()
}

// gone waits until no process is left that works in the workspace. Numbers that commands see
// of themselves are not those of this machine.
func (w *world) gone() {
	w.t.Helper()
	w.soon("the end of all processes", func() bool {
		links, err := filepath.Glob("/proc/[0-9]*/cwd")
		must(w.t, err)
		for _, l := range links {
			if at, err := os.Readlink(l); err == nil && at == w.root {
				if b, err := os.ReadFile(filepath.Dir(l) + "/stat"); err == nil && !strings.Contains(string(b), ") Z ") {
					return false
				}
			}
		}
		return true
	})
}

// TestCancelAsksFirst: what ends when it is asked to is not killed, and its own way of ending runs.
func TestCancelAsksFirst(t *testing.T) {
	w := newWorld(t)
	id := w.background("trap 'echo tidied > tidy; exit 7' TERM; touch up; while :; do sleep 0.05; done")
	w.soon("its start", func() bool { _, err := os.Stat(filepath.Join(w.root, "up")); return err == nil })
	w.call("job_cancel", obj{"jobId": id})
	if d := w.ended(id); d.str("status") != "canceled" || d["exitCode"] != 7.0 {
		t.Errorf("%v", d)
	}
	if _, err := os.Stat(filepath.Join(w.root, "tidy")); err != nil {
		t.Error(err)
	}
	id = w.background("sleep 600")
	w.call("job_cancel", obj{"jobId": id})
	if d := w.ended(id); d.str("signal") != "SIGTERM" {
		t.Errorf("%v", d)
	}
}

// TestCancel: a job that does not want to end is killed after 5 seconds, also when it is asked
// again and again.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.background("trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 1; done' & while :; do sleep 1; done")
	w.soon("its start", func() bool { b, _ := os.ReadFile(filepath.Join(w.root, "pid")); return len(b) > 0 })
	begun := time.Now()
	if d := w.call("job_cancel", obj{"jobId": id}); d.str("status") != "canceling" {
		t.Errorf("%v", d)
	}
	w.soon("its end", func() bool {
		time.Sleep(200 * time.Millisecond)
		return w.call("job_cancel", obj{"jobId": id}).str("status") != "canceling"
	})
	d := w.ended(id)
	if took := time.Since(begun); d.str("status") != "canceled" || d.str("signal") != "SIGKILL" || took < 4*time.Second {
		t.Errorf("%v after %v", d, took)
	}
	w.gone()
	if d := w.call("job_cancel", obj{"jobId": id}); d.str("status") != "canceled" {
		t.Errorf("%v", d)
	}
	_, err := w.try("job_input", obj{"jobId": id, "data": "x"})
	refused(t, err, contract.JobNotRunning)
}

// Case 43: a child holds the output open after the command ended: the result comes all the same.
//
// TestOutputHeldOpen: a child that outlives its parent holds the output open; the answer does
// not wait for it (user-pain 91; case 43).
func TestOutputHeldOpen(t *testing.T) {
	t.Parallel()
	const command = "setsid sleep 15 & sleep 0.3; echo parent; echo $$ > pid"
	t.Run("walls", func(t *testing.T) {
		w := newWorld(t)
		begun := time.Now()
		d := w.sh(command)
		if took := time.Since(begun); d.str("stdout") != "parent\n" || d.str("status") != "exited" || took > 14*time.Second {
			t.Errorf("%v after %v", d, took)
		}
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		w.mode = sandbox.Off
		begun := time.Now()
		id := w.background(command)
		// What ends it now comes too late: it ended by itself.
		w.soon("its end", func() bool {
			pid, err := os.ReadFile(filepath.Join(w.root, "pid"))
			if err != nil || len(bytes.TrimSpace(pid)) == 0 {
				return false
			}
			_, err = os.Stat("/proc/" + string(bytes.TrimSpace(pid)))
			return errors.Is(err, fs.ErrNotExist)
		})
		time.Sleep(time.Second) // its output is waited for twice as long
		if d := w.call("job_cancel", obj{"jobId": id}); d.str("status") != "exited" {
			t.Errorf("%v", d)
		}
		d := w.ended(id)
		if took := time.Since(begun); d.str("stdout") != "parent\n" || d.str("status") != "exited" || d["exitCode"] != 0.0 || took > 14*time.Second {
			t.Errorf("%v after %v", d, took)
		}
		if notes := fmt.Sprint(w.call("job_status", obj{"jobId": id})["notes"]); !strings.Contains(notes, "holds its output open") {
			t.Error(notes)
		}
	})
}

func TestInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.background("read a; echo \"<$a>\"; cat", obj{"stdin": true})
	if d := w.call("job_input", obj{"jobId": id, "data": "one\n"}); d.num("bytesWritten") != 4 || d["stdinOpen"] != true {
		t.Errorf("%v", d)
	}
	if d := w.call("job_input", obj{"jobId": id, "data": "zwei ü\n", "closeStdin": true}); d.num("bytesWritten") != 8 || d["stdinOpen"] != false {
		t.Errorf("%v", d)
	}
	if d := w.ended(id); d.str("stdout") != "<one>\nzwei ü\n" {
		t.Errorf("%v", d)
	}
	// One that does not read holds nobody up, nor does one that closed its input.
	id = w.background("sleep 60", obj{"stdin": true})
	begun := time.Now()
	n := 0
	for range 2 {
		n += w.call("job_input", obj{"jobId": id, "data": strings.Repeat("x", 60<<10)}).num("bytesWritten")
	}
	if took := time.Since(begun); n >= 120<<10 || took > 30*time.Second {
		t.Errorf("%d bytes in %v", n, took)
	}
	w.call("job_cancel", obj{"jobId": id})
	id = w.background("exec <&-; echo closed; sleep 30", obj{"stdin": true})
	w.soon("closing", func() bool { return w.all2(id) == "closed\n" })
	if d := w.call("job_input", obj{"jobId": id, "data": "x"}); d.num("bytesWritten") != 0 || d["stdinOpen"] != false {
		t.Errorf("%v", d)
	}
	w.call("job_cancel", obj{"jobId": id})
}

// TestInputNeedsNoTurn: a job is fed while another call has the workspace, and one that does not
// read keeps the workspace from nobody.
func TestInputNeedsNoTurn(t *testing.T) {
	w := newWorld(t)
	d := newDoor(w)
	id := w.background("cat; sleep 30", obj{"stdin": true})
	release, err := d.turns.Take(context.Background())
	must(t, err)
	fed := make(chan *contract.Reply, 1)
	go func() { fed <- d.run("job_input", obj{"jobId": id, "data": "x\n", "closeStdin": true}) }()
	select {
	case r := <-fed:
		if !r.OK {
			t.Errorf("%+v", r.Error)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for the turn")
	}
	release()
	w.call("job_cancel", obj{"jobId": id})
}

// all2 is the output so far.
func (w *world) all2(id string) string {
	return w.call("job_output", obj{"jobId": id}).str("content")
}

func TestTerminal(t *testing.T) {
	w := newWorld(t)
	d := w.call("run_command", obj{"command": "test -t 0 && test -t 1 && test -t 2 && echo terminal; stty size; echo $TERM; printf 'a\\rb\\n'", "terminal": true})
	if d.str("stdout") != "terminal\n40 120\nxterm-256color\nb\n" || d.num("exitCode") != 0 {
		t.Errorf("%v", d)
	}
	id := w.background("cat; echo end", obj{"terminal": true})
	w.call("job_input", obj{"jobId": id, "data": "typed\n"})
	w.call("job_input", obj{"jobId": id, "data": "", "closeStdin": true})
	if d := w.ended(id); d.str("stdout") != "typed\ntyped\nend\n" && d.str("stdout") != "typed\n^D\b\btyped\nend\n" {
		t.Errorf("%q", d.str("stdout"))
	}
	// The end of input is one in the middle of a line, too, and is one alone.
	for _, parts := range [][]string{{"abc"}, {"abc", ""}, {"abc\n", "d", "e"}, {"abc\n"}, {"abc\x04", ""}} {
		id := w.background("stty -echo; touch up; cat; echo; echo end; cat", obj{"terminal": true})
		w.soon("its start", func() bool { return os.Remove(filepath.Join(w.root, "up")) == nil })
		for i, part := range parts {
			d := w.call("job_input", obj{"jobId": id, "data": part, "closeStdin": i == len(parts)-1})
			if d.num("bytesWritten") != len(part) || d["stdinOpen"] != true {
				t.Errorf("%q: %v", parts, d)
			}
		}
		want := strings.TrimRight(strings.Join(parts, ""), "\x04\n") + "\n"
		w.soon("the end of its input", func() bool { return strings.HasSuffix(w.all2(id), "end\n") })
		if got := w.all2(id); strings.ReplaceAll(got, "\n\n", "\n") != want+"end\n" {
			t.Errorf("%q: %q", parts, got)
		}
		if d := w.call("job_status", obj{"jobId": id}); d.str("status") != "running" {
			t.Errorf("%q ended the input twice: %v", parts, d)
		}
		w.call("job_cancel", obj{"jobId": id})
	}
	// What outlives the job does not keep its terminal's reader.
	begun := time.Now()
	w.call("run_command", obj{"command": "trap '' HUP; setsid sleep 20 & sleep 0.2; echo out", "terminal": true})
	if took := time.Since(begun); took > 18*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestScript: a text above 16 KiB runs from a private file, which is gone afterwards (ADR 023).
func TestScript(t *testing.T) {
	w := newWorld(t)
	w.lim.CommandBytes = 8 << 20
	w.reopen()
	pad := func(n int) string { return "#" + strings.Repeat("x", n) + "\n" }
	for _, n := range []int{16<<10 - 100, 17 << 10, 8<<20 - 100} {
		d := w.sh(pad(n) + "echo $#; stat -c %a \"$0\" 2>/dev/null; cat | wc -c\n")
		want := "0\n600\n0\n"
		if n < 16<<10 {
			want = "0\n755\n0\n"
		}
		if got := d.str("stdout"); got != want && n > 16<<10 || !strings.HasSuffix(got, "0\n") {
			t.Errorf("%d bytes: %v", n, d)
		}
		w.noScripts()
	}
	d := w.sh(pad(20<<10) + "echo $0; no-such-program")
	if got := d.str("stdout") + d.str("stderr"); strings.Contains(got, w.dir) || !strings.HasPrefix(got, sandbox.ScriptPath+"\n"+sandbox.ScriptPath+":") {
		t.Errorf("%q", got)
	}
	id := w.background(pad(20<<10) + "sleep 60")
	w.call("job_cancel", obj{"jobId": id})
	w.ended(id)
	w.noScripts()
	_, err := w.try("run_command", obj{"command": pad(20<<10) + "true", "cwd": "gone"})
	refused(t, err, contract.NotFound)
	w.noScripts()
}

// noScripts holds that nothing to be run is left.
func (w *world) noScripts() {
	w.t.Helper()
	left, err := filepath.Glob(filepath.Join(w.dir, "jobs", "*", "script"))
	must(w.t, err)
	if len(left) > 0 {
		w.t.Errorf("%v are left", left)
	}
}

func TestBatch(t *testing.T) {
	w := newWorld(t)
	_, err := w.try("run_commands", obj{"commands": many(5, "touch started")})
	refused(t, err, contract.ResourceLimit)
	if _, err := os.Stat(filepath.Join(w.root, "started")); err == nil {
		t.Error("some of too many were started")
	}
	w.lim.JobsConcurrentMax = 8
	w.reopen()
	// Each ends when all of them are there.
	d := w.call("run_commands", obj{"commands": many(8, "mktemp ./at.XXXXXX >&2; until test $(ls | wc -l) -ge 8; do sleep 0.05; done; seq 1 2000")})
	if d["allExited"] != true || d["allSucceeded"] != true {
		t.Errorf("%v", d)
	}
	list := d["results"].([]any)
	for i, r := range list {
		one := data(r.(map[string]any))
		if one.str("name") != fmt.Sprintf("cmd%d", i+1) || one["stdoutTruncated"] != true || !strings.HasPrefix(one.str("stdout"), "1\n") || !strings.HasSuffix(one.str("stdoutTail"), "\n2000\n") {
			t.Errorf("%v", one)
		}
	}
	if n := len(encode(t, d)); n > contract.UsualAnswer*5/4 {
		t.Errorf("the answer has %d characters", n)
	}
	d = w.call("run_commands", obj{"commands": []obj{{"name": "bad", "command": "exit 1"}, {"command": "true"}}})
	if d["allExited"] != true || d["allSucceeded"] != false {
		t.Errorf("%v", d)
	}
}

// TestStartedAndUnseen: who started something learns its id, whatever else fails.
func TestStartedAndUnseen(t *testing.T) {
	for name, args := range map[string]obj{
		"run_command":  {"command": "sleep 0.1", "idempotencyKey": "12345678"},
		"run_commands": {"commands": many(2, "sleep 0.1")},
	} {
		for _, during := range []string{"the start", "the wait"} {
			w := newWorld(t)
			p := w.prepare(name, args)
			if during == "the start" {
				must(t, w.svc.BreakSpools())
			}
			a, err := p.Run(context.Background())
			if during == "the wait" {
				must(t, err)
				must(t, w.svc.BreakSpools())
				_, err = p.Follow(context.Background(), a)
			}
			f := refused(t, err, contract.RecoveryRequired)
			list, err := w.svc.List(context.Background(), 10)
			must(t, err)
			if len(list) == 0 {
				t.Errorf("%s: nothing was started", name)
			}
			for _, j := range list {
				if !strings.Contains(fmt.Sprint(f.Detail), j.ID) || !strings.Contains(f.Hint, j.ID) {
					t.Errorf("%s in %s: %s is lost: %+v", name, during, j.ID, f)
				}
			}
		}
	}
}

func many(n int, command string) (list []obj) {
	for range n {
		list = append(list, obj{"command": command})
	}
	return list
}

func TestSlots(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for range w.lim.JobsConcurrentMax {
		ids = append(ids, w.background("sleep 60"))
	}
	_, err := w.try("run_command", obj{"command": "true"})
	if f := refused(t, err, contract.ResourceLimit); !f.Retryable {
		t.Error("it cannot be tried again")
	}
	w.call("job_cancel", obj{"jobId": ids[0]})
	w.ended(ids[0])
	if d := w.sh("echo free"); d.str("stdout") != "free\n" {
		t.Errorf("%v", d)
	}
	for _, id := range ids[1:] {
		w.call("job_cancel", obj{"jobId": id})
	}
}

// TestPrincipals: a client sees its own jobs, the owner all of them.
func TestPrincipals(t *testing.T) {
	w := newWorld(t)
	id := w.background("sleep 30; echo x", obj{"stdin": true})
	for name, args := range map[string]obj{
		"job_status": {}, "job_output": {}, "job_wait": {"waitMs": 1000}, "job_cancel": {}, "job_input": {"data": "x"},
	} {
		args["jobId"] = id
		_, _, err := w.callAs(another, name, args)
		refused(t, err, contract.Forbidden)
	}
	count := func(who contract.Principal) int {
		d, _, err := w.callAs(who, "list_jobs", obj{})
		must(t, err)
		return len(d["jobs"].([]any))
	}
	if a, b, c := count(client), count(another), count(owner); a != 1 || b != 0 || c != 1 {
		t.Errorf("client %d, another %d, owner %d", a, b, c)
	}
	list, err := w.svc.List(context.Background(), 10)
	must(t, err)
	if len(list) != 1 || list[0].ID != id || list[0].Principal != client.GrantID || !list[0].Here {
		t.Errorf("%+v", list)
	}
	if status, err := w.svc.Cancel(context.Background(), id); err != nil || status != "canceling" {
		t.Errorf("%s, %v", status, err)
	}
	w.ended(id)
}

// TestListPages: a cursor goes on with the older jobs, whatever is started meanwhile, and is
// worth nothing to another client.
func TestListPages(t *testing.T) {
	w := newWorld(t)
	var started []string
	run := func() { started = append(started, w.sh("true").str("jobId")) }
	for range 5 {
		run()
	}
	_, _, err := w.callAs(another, "run_command", obj{"command": "true"})
	must(t, err)
	var seen []string
	cursor := ""
	for i, more := range []bool{true, true, false} {
		d, r, err := w.callAs(client, "list_jobs", obj{"limit": 2, "cursor": cursor})
		must(t, err)
		for _, j := range d["jobs"].([]any) {
			seen = append(seen, data(j.(map[string]any)).str("jobId"))
		}
		if cursor = r.NextCursor; r.Truncated != more || (cursor != "") != more {
			t.Errorf("page %d: truncated %v, cursor %q", i, r.Truncated, cursor)
		}
		if more {
			_, _, err = w.callAs(another, "list_jobs", obj{"cursor": cursor})
			refused(t, err, contract.NotFound)
		}
		run()
	}
	slices.Reverse(seen)
	if !slices.Equal(seen, started[:5]) {
		t.Errorf("listed %v of %v", seen, started)
	}
	_, err = w.try("list_jobs", obj{"cursor": "c20"})
	refused(t, err, contract.NotFound)
}

// TestShutdown: no more jobs are started, those that run end, and who waits is answered.
func TestShutdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	soft := w.background("sleep 60")
	hard := w.background("trap '' TERM; touch up; while :; do sleep 1; done")
	w.soon("its start", func() bool { _, err := os.Stat(filepath.Join(w.root, "up")); return err == nil })
	answered := make(chan data, 1)
	go func() {
		r, err := w.do(context.Background(), client, "job_wait", obj{"jobId": hard})
		if err == nil {
			answered <- decode(t, r.Data)
		}
	}()
	time.Sleep(300 * time.Millisecond)
	begun := time.Now()
	must(t, w.svc.Stop(context.Background()))
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
	_, err := w.try("run_command", obj{"command": "true"})
	refused(t, err, contract.Conflict)
	if d := <-answered; d.str("status") != "canceled" {
		t.Errorf("%v", d)
	}
	for _, id := range []string{soft, hard} {
		if d := w.call("job_status", obj{"jobId": id}); d.str("status") != "canceled" {
			t.Errorf("%v", d)
		}
	}
	w.reopen()
	if d := w.call("job_status", obj{"jobId": soft}); d.str("status") != "canceled" || !strings.Contains(fmt.Sprint(d["notes"]), "shut down") {
		t.Errorf("%v", d)
	}
}
