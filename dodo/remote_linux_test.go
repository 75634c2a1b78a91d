package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
)

var (
	// clocked is the program with a clock that tests set.
	clocked = testenv.Program{Package: ".", Tags: "dodo_probe"}
	// visitor is the owner at a browser.
	visitor = testenv.Program{Package: "./testdata/browser"}
)

// A guest is a machine with real clients that know a server by its address.
type guest struct {
	*machine
	site  *site
	path  string // where the clients are
	dir   string // where they work
	model *mcptest.Model
}

// later lets time pass for the server.
func (g *guest) later(d time.Duration) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.Env()["DODO_CONFIG_DIR"], "probe-clock"), []byte(d.String()), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// restart ends the server and starts it on the same port.
func (g *guest) restart() {
	g.t.Helper()
	port := g.site.base[strings.LastIndex(g.site.base, ":")+1:]
	g.ok(nil, "stop")
	<-g.site.gone
	g.site = g.machine.startWith(clocked.Path(g.t), "--port", port)
}

// visits says how often the browser was there, and fails when a visit went wrong.
func (g *guest) visits() int {
	g.t.Helper()
	data, _ := os.ReadFile(g.Path("visits")) // none: it was not there
	n := 0
	for line := range strings.Lines(string(data)) {
		if line != "ok\n" {
			g.t.Errorf("the browser: %s", data)
			return n
		}
		n++
	}
	return n
}

// in runs a client under a terminal of its own, as people do.
func (g *guest) in(name string, args ...string) result {
	g.t.Helper()
	c := exec.Command(filepath.Join(g.path, name), args...)
	c.Env, c.Dir = g.Environ(), g.dir
	return finish(g.t, c)
}

// onTerminal runs a client's command where it finds a terminal.
func (g *guest) onTerminal(name string, args ...string) result {
	g.t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		g.t.Skip("the program script is needed, of util-linux")
	}
	words := []string{filepath.Join(g.path, name)}
	for _, a := range args {
		words = append(words, "'"+a+"'")
	}
	c := exec.Command(script, "-qec", strings.Join(words, " "), "/dev/null")
	c.Env, c.Dir = g.Environ(), g.dir
	return finish(g.t, c)
}

func newGuest(t *testing.T) *guest {
	path := mcptest.Clients(t)
	m := newMachine(t)
	g := &guest{machine: m, path: path, dir: m.dir("client")}
	for _, name := range []string{"xdg-open", "browser"} {
		script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\"\n", visitor.Path(t))
		if err := os.WriteFile(filepath.Join(m.dir("bin"), name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range map[string]string{
		"PATH": m.Path("bin") + ":" + path + ":/usr/bin:/bin", "TERM": "xterm", "DISPLAY": ":0", "BROWSER": m.Path("bin/browser"),
		"BROWSER_DODO": clocked.Path(t), "BROWSER_LOG": m.Path("visits"),
		"ENABLE_TOOL_SEARCH": "false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
	} {
		m.Set(k, v)
	}
	g.model = mcptest.NewModel(t, modelAnswer, func(tools, results []string) mcptest.Move {
		if len(results) == 0 {
			return mcptest.Move{Name: mcptest.Named(tools, "project_overview"), Args: map[string]any{}}
		}
		return mcptest.Move{}
	})
	g.site = m.startWith(clocked.Path(t), "--root", m.workspace())
	return g
}

// TestRemoteClients: real clients find out how to log in, register, send the owner to the
// consent page, come back, and call; they go on after a restart of the server, and when their
// token has ended, without asking the owner again.
func TestRemoteClients(t *testing.T) {
	for _, client := range []struct {
		name  string
		setup func(g *guest)
		login func(g *guest) result
		use   []string
	}{
		{
			name:  "claude",
			setup: func(g *guest) { g.Set("ANTHROPIC_BASE_URL", g.model.URL); g.Set("ANTHROPIC_API_KEY", "none") },
			login: func(g *guest) result {
				if r := g.in("claude", "mcp", "add", "--transport", "http", "dodo", g.site.base+"/mcp"); r.status != 0 {
					return r
				}
				return g.onTerminal("claude", "mcp", "login", "dodo")
			},
			use: []string{"-p", "look at the project", "--allowedTools", "mcp__dodo__project_overview"},
		},
		{
			name: "codex",
			setup: func(g *guest) {
				g.Write(g.t, ".codex/config.toml", fmt.Sprintf("model = \"stand-in\"\n\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = %q\nwire_api = \"responses\"\n", g.model.URL+"/v1"))
			},
			login: func(g *guest) result { return g.in("codex", "mcp", "add", "dodo", "--url", g.site.base+"/mcp") },
			use:   []string{"exec", "--skip-git-repo-check", "-c", `model_provider="stand-in"`, "--dangerously-bypass-approvals-and-sandbox", "look at the project"},
		},
	} {
		t.Run(client.name, func(t *testing.T) {
			g := newGuest(t)
			client.setup(g)
			r := client.login(g)
			if n := g.visits(); r.status != 0 || n != 1 {
				t.Fatalf("the login ends with %d after %d visits: %s%s\n%s", r.status, n, r.stdout, r.stderr, g.site.err)
			}
			use := func(when string) {
				t.Helper()
				g.model.Forget()
				r := g.in(client.name, client.use...)
				_, results, strange := g.model.Seen()
				if r.status != 0 || len(results) != 1 || !workspacePattern.MatchString(results[0]) {
					t.Errorf("%s: it ends with %d, %.2000s%.2000s\nresults %.2000q, strange %v\n%s", when, r.status, r.stdout, r.stderr, results, strange, g.site.err)
				}
			}
			use("after the login")
			g.restart()
			use("after a restart")
			g.later(15 * time.Minute)
			use("with a token that ended")
			if n := g.visits(); n != 1 {
				t.Errorf("the owner was asked %d times", n)
			}
		})
	}
}
