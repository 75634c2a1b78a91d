package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

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
	wrap := []string{unshare, "--net"}
	if os.Geteuid() != 0 {
		wrap = []string{unshare, "--net", "--map-current-user"}
	}
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
	c := exec.CommandContext(t.Context(), strace, "-f", "-q", "-e", "trace=network,execve", "-o", log, "sh", "-c", everything, w.path)
	c.Env, c.Dir = w.Environ(), w.Dir
	r := finish(t, c)
	if r.status != 0 {
		t.Skipf("strace: status %d\n%s%s", r.status, r.stdout, r.stderr)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`execve\("` + regexp.QuoteMeta(w.path) + `"`)
	if n := len(ours.FindAll(data, -1)); n != 7 {
		t.Errorf("the program was seen %d times", n)
	}
	// sh and its tools open none either, so any call at all is one too many.
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, "execve") || strings.Contains(line, "+++") || strings.Contains(line, "---") {
			continue
		}
		t.Errorf("%s", line)
	}
}
