package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/testenv"
)

// A machine is an installation with the built program.
type machine struct {
	*testenv.Home
	t testing.TB
}

func newMachine(t testing.TB) *machine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dodo-test-") // a short path, as installations have
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &machine{testenv.NewHome(t), t}
	m.Set("DODO_CONFIG_DIR", filepath.Join(dir, "i"))
	return m
}

func (m *machine) dir(name string) string {
	m.t.Helper()
	d := m.Path(name)
	if err := os.MkdirAll(d, 0o700); err != nil {
		m.t.Fatal(err)
	}
	return d
}

// dodo runs a command in a directory that has nothing to do with any workspace.
func (m *machine) dodo(args ...string) result {
	m.t.Helper()
	c := exec.Command(built.Path(m.t), args...)
	c.Env, c.Dir = m.Environ(), "/"
	return finish(m.t, c)
}

// ok is dodo with a good end, and its JSON.
func (m *machine) ok(into any, args ...string) {
	m.t.Helper()
	r := m.dodo(args...)
	if r.status != 0 {
		m.t.Fatalf("dodo %v: %d %s", args, r.status, r.stderr)
	}
	if into != nil {
		if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
			m.t.Fatalf("dodo %v: %v\n%s", args, err, r.stdout)
		}
	}
}

// A running is a stdio server whose client is the test.
type running struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

func (m *machine) serve(root string, args ...string) *running {
	m.t.Helper()
	s := &running{cmd: exec.Command(built.Path(m.t), append([]string{"stdio"}, args...)...)}
	s.cmd.Env, s.cmd.Dir = m.Environ(), root
	s.cmd.Stderr = &s.err
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		m.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	// It answers when it is there.
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	if line, err := s.out.ReadString('\n'); err != nil || !strings.Contains(line, `"result"`) {
		m.t.Fatalf("%s %v %s", line, err, &s.err)
	}
	return s
}

// Three servers, from anywhere: shown, filtered, and stopped; what was killed is not named.
func TestStatusAndStop(t *testing.T) {
	m := newMachine(t)
	a, b := m.dir("a"), m.dir("b")
	one, two, three := m.serve(a), m.serve(a), m.serve(b)
	var s statusOut
	m.ok(&s, "status", "--json")
	if len(s.Servers) != 3 || len(s.Silent) != 0 {
		t.Fatalf("%+v", s)
	}
	pids := map[int]bool{one.cmd.Process.Pid: true, two.cmd.Process.Pid: true, three.cmd.Process.Pid: true}
	for _, x := range s.Servers {
		if !pids[x.PID] || x.Transport != "stdio" || x.Version == "" || !strings.HasPrefix(x.WorkspaceID, "ws_") || !strings.HasPrefix(x.Epoch, "boot_") {
			t.Errorf("%+v", x)
		}
		delete(pids, x.PID)
	}
	m.ok(&s, "status", "--json", "--root", b)
	if len(s.Servers) != 1 || s.Servers[0].PID != three.cmd.Process.Pid || s.Servers[0].Root != b {
		t.Errorf("%+v", s)
	}
	if r := m.dodo("status", "--root", m.dir("c")); r.status != exitNotReady {
		t.Errorf("%+v", r)
	}
	one.cmd.Process.Kill()
	one.cmd.Wait()
	m.ok(&s, "status", "--json")
	if len(s.Servers) != 2 || len(s.Silent) != 0 {
		t.Errorf("after a kill: %+v", s)
	}
	var stopped stopOut
	m.ok(&stopped, "stop", "--json", "--root", a)
	if len(stopped.Stopped) != 1 || stopped.Stopped[0] != two.cmd.Process.Pid {
		t.Errorf("%+v", stopped)
	}
	if err := two.cmd.Wait(); err != nil {
		t.Errorf("the stopped server: %v %s", err, &two.err)
	}
	m.ok(&stopped, "stop", "--json")
	if err := three.cmd.Wait(); err != nil {
		t.Errorf("the stopped server: %v %s", err, &three.err)
	}
	if r := m.dodo("stop"); r.status != exitNotReady {
		t.Errorf("%+v", r)
	}
}

// overview is what a server answers to project_overview.
func (s *running) overview(t testing.TB) (trust, access string) {
	t.Helper()
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"project_overview","arguments":{}}}`)
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatalf("%v %s", err, &s.err)
	}
	var answer struct {
		Result struct {
			StructuredContent struct {
				Data struct{ TrustMode, AccessMode string }
			}
		}
	}
	if err := json.Unmarshal([]byte(line), &answer); err != nil {
		t.Fatal(err)
	}
	d := answer.Result.StructuredContent.Data
	return d.TrustMode, d.AccessMode
}

// What is changed without a server holds at the next call of those that run.
func TestOwnerChangesHoldAtOnce(t *testing.T) {
	m := newMachine(t)
	w := m.dir("w")
	s := m.serve(w)
	fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, step := range []struct {
		command       string
		trust, access string
	}{
		{"version", "trusted", "personal"},
		{"access-mode managed", "inspect", "managed"},
		{"trust --mode edit --root " + w, "edit", "managed"},
		{"trust --mode trusted --yes --root " + w, "trusted", "managed"},
		{"trust --mode inspect --root " + w, "inspect", "managed"},
		{"access-mode personal", "trusted", "personal"},
	} {
		m.ok(nil, strings.Fields(step.command)...)
		if trust, access := s.overview(t); trust != step.trust || access != step.access {
			t.Errorf("after %s: %s, %s", step.command, trust, access)
		}
	}
}

// A server that stands still hinders nothing but itself.
func TestServerThatHangs(t *testing.T) {
	m := newMachine(t)
	s := m.serve(m.dir("a"))
	testenv.Halt(t, s.cmd.Process)
	r := m.dodo("status", "--json")
	var out statusOut
	if err := json.Unmarshal([]byte(r.stdout), &out); err != nil || r.status != exitNotReady || len(out.Silent) == 0 {
		t.Errorf("%+v", r)
	}
	for _, offline := range [][]string{{"trust", "--root", m.Path("a"), "--mode", "edit"}, {"audit", "verify"}, {"access-mode", "managed"}, {"config", "list"}} {
		if r := m.dodo(offline...); r.status != 0 {
			t.Errorf("%v with a server that hangs: %+v", offline, r)
		}
	}
}

// The owner sees what waits, with all that the answer is about, and answers it once.
func TestApprovals(t *testing.T) {
	m := newMachine(t)
	root := m.dir("w")
	env := m.Env()
	run1 := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		status := run(t.Context(), args, m.Environ(), &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		return status, out.String(), errs.String()
	}
	p := &program{env: env, cwd: "/", streams: &cli.Streams{}}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(nil)
	s, err := in.serve(t.Context(), opening{root: root, surface: surface.Full, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end(context.Background())
	door, err := s.ownerDoor(t.Context(), "stdio", func() {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()

	if status, out, _ := run1("pending"); status != 0 || out != "Nothing waits for you.\n" {
		t.Errorf("%d %s", status, out)
	}
	active := s.host.Active()
	q := state.Question{
		Workspace: active.ID, Epoch: active.Epoch, Principal: contract.LocalGrant, Tool: "write_file", Digest: "sha256:0", Summary: "write 1 file",
		Detail: json.RawMessage(`{"path":"a\u202eb","text":"x\u001b[31m\nApproved: yes"}`),
	}
	a, _, err := in.store.Consume(t.Context(), q, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := run1("pending")
	if status != 0 || !strings.Contains(out, a.ID) || !strings.Contains(out, "write_file") || !strings.Contains(out, root) || strings.ContainsAny(out, "\x1b\u202e") ||
		!strings.Contains(out, "\n    path: a\\u{202e}b\n    text:\n      x\\u{1b}[31m\n      Approved: yes\n") {
		t.Errorf("%d %q %s", status, out, errs)
	}
	if status, _, errs := run1("approve", "apr_0000000000"); status != 1 {
		t.Errorf("%d %s", status, errs)
	}
	if status, out, errs := run1("approve", a.ID); status != 0 || !strings.Contains(out, "is approved") {
		t.Errorf("%d %s %s", status, out, errs)
	}
	if status, _, errs := run1("deny", a.ID); status != 1 || !strings.Contains(errs, "already answered") {
		t.Errorf("%d %s", status, errs)
	}
	if _, used, err := in.store.Consume(t.Context(), q, time.Minute); !used || err != nil {
		t.Errorf("%v %v", used, err)
	}
	q.Digest, q.Detail = "sha256:1", json.RawMessage(`[{"path":"f","diff":"`+strings.Repeat("x", 2<<20)+`\n+\t\u202e","lines":[0`+strings.Repeat(",1", 400)+`],"diffTruncated":true}]`)
	if a, _, err = in.store.Consume(t.Context(), q, time.Minute); err != nil {
		t.Fatal(err)
	}
	if status, out, errs := run1("pending", "--json"); status != 0 || len(out) < 2<<20 || !strings.Contains(out, a.ID) {
		t.Errorf("a preview longer than a message: %d, %d bytes, %s", status, len(out), errs)
	}
	notAll := "NOT ALL IS SHOWN of what changes in f"
	if status, out, _ := run1("pending"); status != 0 || !strings.Contains(out, "and 208 more lines: `dodo pending "+a.ID+"`") || len(out) > 20_000 || !strings.Contains(out, notAll) {
		t.Errorf("%d %.200s", status, out[max(0, len(out)-200):])
	}
	if status, out, _ := run1("pending", a.ID); status != 0 || strings.Contains(out, "more lines") || len(out) < 2<<20 || !strings.Contains(out, notAll) ||
		!strings.Contains(out, "xx\n        +\t\\u{202e}\n") {
		t.Errorf("%d %d bytes %q", status, len(out), out[:min(len(out), 300)])
	}
	if status, _, errs := run1("pending", "apr_0000000000"); status != 1 || !strings.Contains(errs, "waits for an approval of that id") {
		t.Errorf("%d %s", status, errs)
	}
	if status, out, errs := run1("deny", a.ID, "--json"); status != 0 || !strings.Contains(out, `"denied"`) {
		t.Errorf("%d %s %s", status, out, errs)
	}
	if status, out, _ := run1("audit", "--json", "--limit", "2"); status != 0 || !strings.Contains(out, "owner.deny") || !strings.Contains(out, "owner.approve") {
		t.Errorf("%d %s", status, out)
	}
}

// A server that cannot answer, such as one of an older version, does not stand between the
// owner and the others.
func TestApprovalsBesideAServerThatFails(t *testing.T) {
	m := newMachine(t)
	root := m.dir("w")
	p := &program{env: m.Env(), cwd: "/", streams: &cli.Streams{}}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(nil)
	if err := p.setAccessMode(t.Context(), contract.AccessManaged); err != nil {
		t.Fatal(err)
	}
	old, err := owner.Listen(t.Context(), owner.Options{Dir: in.dir, Stop: func() {}, Status: func() owner.Status {
		return owner.Status{PID: os.Getpid(), Version: "0.1"} // knows no approvals
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	c := m.speak("legacy", root)
	id := ""
	for range 2 {
		e := c.raw("project_overview", "{}")
		e = c.raw("write_file", fmt.Sprintf(`{"workspaceId":%q,"workspaceEpoch":%q,"path":"a","content":"x"}`, e.WorkspaceID, e.WorkspaceEpoch))
		if id != "" {
			if !e.OK {
				t.Errorf("approved: %+v", e.Error)
			}
			break
		}
		if e.Error == nil || e.Error.Code != "APPROVAL_REQUIRED" {
			t.Fatalf("%+v", e.Error)
		}
		id = e.Error.Detail["approvalId"].(string)
		for _, args := range [][]string{{"pending"}, {"approve", id}} {
			var out, errs bytes.Buffer
			if status := run(t.Context(), args, m.Environ(), &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); status != 0 || !strings.Contains(out.String(), id) {
				t.Errorf("%v: %d %s %s", args, status, &out, &errs)
			}
		}
	}
}

// A server that starts while the owner narrows the access never widens it again.
func TestAccessModeIsMirroredAsTheFileSays(t *testing.T) {
	m := newMachine(t)
	p := &program{env: m.Env(), streams: &cli.Streams{}}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(nil)
	if in.config.AccessMode != contract.AccessPersonal {
		t.Fatal(in.config.AccessMode)
	}
	for i := range 20 { // both ways, against a start at the same time
		mode := []contract.AccessMode{contract.AccessManaged, contract.AccessPersonal}[i%2]
		done := make(chan error)
		go func() {
			other, err := p.install(t.Context())
			if err == nil {
				other.close(nil)
			}
			done <- err
		}()
		err := p.setAccessMode(t.Context(), mode)
		if err := errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(in.dir)
		if err != nil {
			t.Fatal(err)
		}
		a, err := in.store.Authority(t.Context(), "ws", "cl")
		if err != nil || a.AccessMode != mode || c.AccessMode != mode {
			t.Fatalf("set %s: the file says %s, the state %s, %v", mode, c.AccessMode, a.AccessMode, err)
		}
	}
}
