package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/mcptest"
	"localmcp/mooncite/internal/engine"
)

// everything is what a user does in a day, as a script for sh; the program is "$0".
const everything = `set -e
"$0" rebuild >/dev/null
"$0" recall ECONNRESET >/dev/null
"$0" status --json >/dev/null
"$0" source list >/dev/null
id=$("$0" recall --json ECONNRESET | sed -n 's/.*"evidenceId": "\(.*\)".*/\1/p' | head -n 1)
"$0" inspect "$id" | head -n 1
(
	echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + `}'
	echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mooncite_recall","arguments":{"query":"ECONNRESET"}}}'
) | "$0" serve >/dev/null
echo done`

// Without any network, not even a loopback interface, everything works.
func TestWithoutNetwork(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Skip("there is no unshare here")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a network namespace in which the directories above the home still have their owner")
	}
	wrap := []string{unshare, "--net"}
	if out, err := exec.Command(wrap[0], append(wrap[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no network namespace can be made here: %v %s", err, out)
	}
	w := sampleWorld(t)
	c := exec.CommandContext(t.Context(), wrap[0], append(wrap[1:], "sh", "-c", everything, w.path)...)
	c.Env, c.Dir = w.Environ(), w.Dir
	r := finish(t, c)
	if r.status != 0 || !strings.HasPrefix(r.stdout, "Mooncite inspection: verified; ") || !strings.HasSuffix(r.stdout, "done\n") {
		t.Errorf("status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	p := &client{mcptest.Start(t, w.Environ(), append(wrap, w.path, "serve")...), t}
	p.Call("initialize", initialize)
	p.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if in := p.inspect(p.finds("ECONNRESET").EvidenceID); in.Outcome != engine.Verified {
		t.Errorf("%s", in.Text())
	}
	p.CloseInput()
	if err := p.WaitExit(2 * time.Second); err != nil {
		t.Error(err)
	}
}

// No command ever asks the kernel for a socket.
func TestNoSocket(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("there is no strace here")
	}
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace does not work here: %v %s", err, out)
	}
	w := sampleWorld(t)
	log := w.Path("tmp/calls")
	// One file for each thread, so that no line is torn by another.
	c := exec.CommandContext(t.Context(), strace, "-ff", "-q", "-e", "trace=network,execve", "-o", log, "sh", "-c", everything, w.path)
	c.Env, c.Dir = w.Environ(), w.Dir
	r := finish(t, c)
	if r.status != 0 {
		t.Skipf("strace: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	logs, err := filepath.Glob(log + ".*")
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	for _, name := range logs {
		data = append(data, read(t, name)...)
	}
	ours := regexp.MustCompile(`execve\("` + regexp.QuoteMeta(w.path) + `"`)
	if n := len(ours.FindAll(data, -1)); n != 7 {
		t.Errorf("the program was seen %d times", n)
	}
	// sh and its tools open none. The program asks when it tries its confinement, is denied,
	// and asks for nothing else: each call is there as often as there were tries.
	calls := networkCalls(data)
	if len(calls) < 5 {
		t.Errorf("the confinement was not tried: %v", calls)
	}
	for call, n := range calls {
		if !strings.HasSuffix(call, "= -1 EPERM (Operation not permitted)") || n%confinedProcesses != 0 {
			t.Errorf("%d times: %s", n, call)
		}
	}
}

// networkCalls counts the calls in what strace wrote of network and execve. A thread that
// ends with its process may be shown in a call of which strace learned nothing.
func networkCalls(data []byte) map[string]int {
	calls := map[string]int{}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "execve") || strings.Contains(line, "+++") || strings.Contains(line, "---") || strings.HasPrefix(line, "???(") {
			continue
		}
		calls[pointer.ReplaceAllString(strings.TrimSpace(line), "POINTER")]++
	}
	return calls
}

func TestNetworkCalls(t *testing.T) {
	got := networkCalls([]byte(`execve("/bin/mooncite", ["mooncite"], 0xc000 /* 9 vars */) = 0
socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = -1 EPERM (Operation not permitted)
bind(-1, 0xc000, 16)                    = -1 EPERM (Operation not permitted)
bind(-1, 0xd000, 16)                    = -1 EPERM (Operation not permitted)
socket(AF_UNIX <unfinished ...>
???( <unfinished ...>
--- SIGURG {si_signo=SIGURG} ---
+++ exited with 0 +++
`))
	want := map[string]int{"socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = -1 EPERM (Operation not permitted)": 1,
		"bind(-1, POINTER, 16)                    = -1 EPERM (Operation not permitted)": 2, "socket(AF_UNIX <unfinished ...>": 1}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// confinedProcesses are those of everything that read histories: six commands and the
// worker of serve.
const confinedProcesses = 7

var pointer = regexp.MustCompile(`0x[0-9a-f]+`)
