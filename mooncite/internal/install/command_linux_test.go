package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/internal/testenv"
)

func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "client")
	testenv.Executable(t, name, []byte("#!/bin/sh\n"+text))
	return name
}

func TestCommand(t *testing.T) {
	c := commands{env: map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/h"}}
	o, err := c.run(t.Context(), "", script(t, `echo "$HOME $PI_OFFLINE $# $1"; pwd; echo bad >&2; exit 3`), "a b", "$(x)")
	if err != nil || o.status != 3 || o.stdout != "/h 1 2 a b\n/\n" || o.said() != "bad" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := c.run(t.Context(), "", script(t, "yes | head -c 2000000")); !errors.Is(err, errLoud) {
		t.Errorf("too much output: %v", err)
	}
	if _, err := c.find("no-such-command", ""); !errors.Is(err, errAbsent) {
		t.Errorf("an absent command: %v", err)
	}
	c.env["OVER"] = "relative/path"
	if _, err := c.find("sh", "OVER"); !errors.Is(err, errAbsent) {
		t.Errorf("a relative override: %v", err)
	}
	c.env["PATH"] = ".:relative"
	if got, err := c.find("sh", ""); !errors.Is(err, errAbsent) {
		t.Errorf("a relative PATH gave %s, %v", got, err)
	}
}

// What a client complained of, when it says more than that.
func TestSaid(t *testing.T) {
	for text, want := range map[string]string{
		"": "exit status 1",
		"WARNING: x\nError: bad\n\nCaused by:\n    0: here\n    unclosed array\n       \n":                                                            "unclosed array",
		"/x.js:1\nthrow e\n^\n\nTypeError: bad thing: it\n    at f (/x.js:1:7)\n    at node:internal/main:33 {\n  code: 'X'\n}\n\nNode.js v24.21.0\n": "TypeError: bad thing: it",
		"node:fs:1\n\nError [ERR_X]: no\n    at f\n\nNode.js v24.21.0\n":                                                                              "Error [ERR_X]: no",
		"1 | x\n    ^\nerror: not found\n      at /x.ts:1\n\nBun v1.3.1 (Linux x64)\n":                                                                "error: not found",
		"Node.js v24.21.0\n": "Node.js v24.21.0",
	} {
		if got := (output{status: 1, stderr: text}).said(); got != want {
			t.Errorf("%q says %q, want %q", text, got, want)
		}
	}
	b := &base{label: "Codex", command: "codex", listing: "codex mcp list"}
	if f := b.silent(output{}, errors.Join(errSilent, context.DeadlineExceeded)); f.Detail != "the command did not end in time" || f.Remedy != "try `codex mcp list` in a terminal" {
		t.Errorf("%+v", f)
	}
}

// A client that hangs is ended with everything it started.
func TestCommandThatHangs(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	if _, err := (commands{env: map[string]string{"PATH": "/usr/bin:/bin"}}).run(ctx, "", script(t, "sleep 60 & echo $! >"+pidFile+"; wait")); !errors.Is(err, errSilent) {
		t.Errorf("it gave %v", err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			break
		}
		if try > 100 {
			t.Fatalf("process %d still runs", pid)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
