package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunModes: what the owner says for one run holds in that run, and changes nothing that is
// saved (contract 017).
func TestRunModes(t *testing.T) {
	for _, c := range []struct {
		flags  []string
		asked  bool // the owner is, before a command
		walled bool
	}{
		{nil, true, true},
		{[]string{"--allow", "--all"}, false, true},
		{[]string{"--bypass"}, false, false},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			m.ok(nil, "access-mode", "managed")
			m.ok(nil, "project", "add", dir)
			file := filepath.Join(m.Env()["DODO_CONFIG_DIR"], "config.json")
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := m.start(append(c.flags, "--root", dir)...)
			tok := s.login("dodo:read dodo:exec")
			m.ok(nil, "access", "set", tok.Client, "--scopes", "read,exec", "--root", dir)
			over := s.call(tok.Access, "project_overview", `{}`)
			if !over.OK {
				t.Fatalf("%+v", over.Error)
			}
			e := s.call(tok.Access, "dodo_exec", fmt.Sprintf(`{"workspaceId":%q,"workspaceEpoch":%q,"operation":"run_command","args":{"command":"true"}}`, over.WorkspaceID, over.WorkspaceEpoch))
			switch {
			case c.asked && (e.OK || e.Error.Code != "APPROVAL_REQUIRED"):
				t.Errorf("%+v", e)
			case !c.asked && (!e.OK || (e.text("isolation") != "none") != c.walled):
				t.Errorf("%+v %+v", e.Data, e.Error)
			}
			after, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// The directory is remembered, and nothing else.
			kept := bytes.NewBuffer(nil)
			for line := range bytes.Lines(after) {
				if !bytes.Contains(line, []byte("startupProject")) {
					kept.Write(line)
				}
			}
			if !bytes.Equal(kept.Bytes(), before) {
				t.Errorf("the configuration was changed:\n%s\nto\n%s", before, after)
			}
			if r := m.dodo("trust", "--root", dir); !strings.Contains(r.stdout, "inspect") {
				t.Errorf("saved trust: %s", r.stdout)
			}
		})
	}
}

// TestStartThatFails: one that finds its port taken says what to do, and remembers nothing.
func TestStartThatFails(t *testing.T) {
	m := newMachine(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := m.dodo("start", "--root", m.workspace(), "--port", fmt.Sprint(l.Addr().(*net.TCPAddr).Port))
	if r.status != 1 || !strings.Contains(r.stderr, "in use") || !strings.Contains(r.stderr, "--port") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	if r := m.dodo("config", "get", "startupProject"); strings.TrimSpace(r.stdout) != "" {
		t.Errorf("remembered: %q", r.stdout)
	}
	if r := m.dodo("project", "list"); strings.Contains(r.stdout, "prj_") {
		t.Errorf("registered: %s", r.stdout)
	}
	// And the port is free again for one that can be served elsewhere.
	if r := m.dodo("start", "--root", "/none", "--port", "0"); r.status != 1 || !strings.Contains(r.stderr, "not there") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
}
