package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/install"
)

// A server says what the command line found out last, and starts no client to know more.
func TestServerStartsNoClient(t *testing.T) {
	w := sampleWorld(t)
	for _, name := range clientCommands {
		w.Write(t, "bin/README", "stand-ins")
		testenv.Executable(t, w.Path("bin/"+name), []byte("#!/bin/sh\necho "+name+" >>"+w.Path("started")+"\nexit 1\n"))
		w.Set(name, w.Path("bin/"+name))
	}
	started := func() int {
		data, err := os.ReadFile(w.Path("started"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(data), "\n")
	}
	c := w.serve()
	if r := c.status().Registrations; r.ProbedAt != nil || r.Codex != "unavailable" {
		t.Errorf("before any command asked: %+v", r)
	}
	w.recall("ECONNRESET")
	w.must(0, "rebuild")
	w.run("source", "list")
	if n := started(); n != 0 {
		t.Errorf("clients were started %d times by what does not need them", n)
	}
	w.must(0, "status")
	if n := started(); n != len(clientCommands) {
		t.Errorf("`mooncite status` started clients %d times", n)
	}
	r := c.status().Registrations
	if r.ProbedAt == nil {
		t.Errorf("the running server does not know: %+v", r)
	}
	w.must(0, "install")
	n := started()
	if again := c.status().Registrations; again.ProbedAt == nil || *again.ProbedAt == *r.ProbedAt {
		t.Errorf("after an install the server says %+v", again)
	}
	if started() != n {
		t.Error("a server started a client")
	}
}

// What is replaced is the file, not the program that runs from it; and what it works with
// is not taken away under it.
func TestServerOutlivesUpdate(t *testing.T) {
	w := sampleWorld(t)
	w.must(0, "install")
	installed := w.Path(".local/share/mooncite/package/bin/mooncite")
	c := &client{mcptest.Start(t, w.Environ(), installed, "serve"), t}
	c.Call("initialize", initialize)
	c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.finds("ECONNRESET")

	w.Write(t, ".local/share/mooncite/package/skills/mooncite/SKILL.md", "an older skill")
	if out := decode[install.Result](t, w.must(0, "install", "--json").stdout); out.Outcome != install.Updated {
		t.Errorf("the package was not replaced: %s", out.Outcome)
	}
	c.finds("ECONNRESET")
	if r := w.must(1, "purge", "--yes"); !strings.Contains(r.stderr, "end the clients") {
		t.Errorf("purge says %s", r.stderr)
	}
	c.finds("ECONNRESET")
	w.must(0, "uninstall")
	c.finds("ECONNRESET")
	c.CloseInput()
	if err := c.WaitExit(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	w.must(0, "purge", "--yes")
}
