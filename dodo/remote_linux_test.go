package main

import (
	"fmt"
	"io"
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

// onTerminal runs a client's command where it finds a terminal, on which somebody types.
func (g *guest) onTerminal(typed, name string, args ...string) result {
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
	in, err := c.StdinPipe()
	if err != nil {
		g.t.Fatal(err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() { // again and again: nobody knows when it listens
		defer in.Close()
		for {
			select {
			case <-over:
				return
			case <-time.After(2 * time.Second):
				_, _ = io.WriteString(in, typed) // it may have ended
			}
		}
	}()
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

// byModel makes a client's model look at the project, and says what went wrong.
func (g *guest) byModel(name string, args ...string) string {
	g.t.Helper()
	g.model.Forget()
	r := g.in(name, args...)
	_, results, strange := g.model.Seen()
	if r.status != 0 || len(results) != 1 || !workspacePattern.MatchString(results[0]) {
		return fmt.Sprintf("it ends with %d, %.2000s%.2000s\nresults %.2000q, strange %v", r.status, r.stdout, r.stderr, results, strange)
	}
	return ""
}

// says makes a client do something, whose output must have a text.
func says(r result, text string) string {
	if r.status != 0 || !strings.Contains(r.stdout+r.stderr, text) {
		return fmt.Sprintf("it ends with %d, %.3000s%.3000s", r.status, r.stdout, r.stderr)
	}
	return ""
}

// remoteClients are the real clients: how each is told of the server and logs in, and how it
// calls.
var remoteClients = []struct {
	name string
	more bool // not in every run of the tests: make clients runs it
	// renews says that what use does renews a token that the server says has ended.
	renews bool
	login  func(g *guest) result
	use    func(g *guest) string // what went wrong
}{
	{
		name: "claude", renews: true,
		login: func(g *guest) result {
			g.Set("ANTHROPIC_BASE_URL", g.model.URL)
			g.Set("ANTHROPIC_API_KEY", "none")
			if r := g.in("claude", "mcp", "add", "--transport", "http", "dodo", g.site.base+"/mcp"); r.status != 0 {
				return r
			}
			return g.onTerminal("", "claude", "mcp", "login", "dodo")
		},
		use: func(g *guest) string {
			return g.byModel("claude", "-p", "look at the project", "--allowedTools", "mcp__dodo__project_overview")
		},
	},
	{
		name: "codex", renews: true,
		login: func(g *guest) result {
			g.Write(g.t, ".codex/config.toml", fmt.Sprintf("model = \"stand-in\"\n\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = %q\nwire_api = \"responses\"\n", g.model.URL+"/v1"))
			return g.in("codex", "mcp", "add", "dodo", "--url", g.site.base+"/mcp")
		},
		use: func(g *guest) string {
			return g.byModel("codex", "exec", "--skip-git-repo-check", "-c", `model_provider="stand-in"`, "--dangerously-bypass-approvals-and-sandbox", "look at the project")
		},
	},
	{
		name: "inspector", renews: true,
		login: func(g *guest) result {
			g.Set("MCP_AUTO_OPEN_ENABLED", "true")
			g.Set("MCP_INSPECTOR_SECRET_STORE", "file")
			return g.in("inspector", g.site.base+"/mcp", "--transport", "http", "--method", "tools/list", "--format", "json", "-q")
		},
		use: func(g *guest) string {
			return says(g.in("inspector", g.site.base+"/mcp", "--transport", "http", "--method", "tools/call", "--tool-name", "project_overview", "--format", "json", "-q"), "workspaceEpoch")
		},
	},
	{
		name: "pi", more: true, renews: true,
		login: func(g *guest) result {
			g.Write(g.t, ".pi/agent/models.json", `{"providers":{"stand-in":{"baseUrl":"`+g.model.URL+`/v1","api":"openai-completions","apiKey":"none",`+
				`"models":[{"id":"stand-in","name":"stand-in","reasoning":false,"input":["text"],"contextWindow":100000,"maxTokens":1000}]}}}`)
			g.Write(g.t, ".pi/agent/mcp.json", `{"mcpServers":{"dodo":{"url":"`+g.site.base+`/mcp","exposure":"direct"}}}`)
			return g.onTerminal("", "pi", "mcp", "login", "dodo")
		},
		use: func(g *guest) string {
			return g.byModel("pi", "-p", "--provider", "stand-in", "--model", "stand-in", "--no-session", "look at the project")
		},
	},
	{
		name: "gemini", more: true,
		login: func(g *guest) result {
			g.Set("GEMINI_API_KEY", "none")
			g.Write(g.t, ".gemini/trustedFolders.json", `{"`+g.dir+`":"TRUST_FOLDER"}`)
			if r := g.in("gemini", "mcp", "add", "-s", "user", "-t", "http", "dodo", g.site.base+"/mcp"); r.status != 0 {
				return r
			}
			r := g.onTerminal("y\r", "gemini", "-p", "/mcp auth dodo")
			if strings.Contains(r.stdout, "Successfully authenticated") {
				r.status = 0 // it then fails to go on without a person
			}
			return r
		},
		use: func(g *guest) string { return says(g.in("gemini", "mcp", "list"), "Connected") },
	},
	{
		name: "mcp-remote", more: true, renews: true,
		login: func(g *guest) result { return g.in("mcp-remote-client", g.site.base+"/mcp", "--allow-http") },
		use: func(g *guest) string {
			return says(g.onTerminal("", "mcp-remote-client", g.site.base+"/mcp", "--allow-http"), "project_overview")
		},
	},
}

// TestRemoteClients: real clients find out how to log in, register, send the owner to the
// consent page, come back, and use the server; they go on after a restart of it, and when their
// token has ended, without asking the owner again.
func TestRemoteClients(t *testing.T) {
	all := os.Getenv("DODO_TEST_CLIENTS") == "all"
	for _, client := range remoteClients {
		if client.more && !all {
			continue
		}
		t.Run(client.name, func(t *testing.T) {
			g := newGuest(t)
			if client.more {
				mcptest.MoreClients(t, g.path)
			}
			r := client.login(g)
			if n := g.visits(); r.status != 0 || n != 1 {
				t.Fatalf("the login ends with %d after %d visits: %s%s\n%s", r.status, n, r.stdout, r.stderr, g.site.err)
			}
			use := func(when string) {
				t.Helper()
				if wrong := client.use(g); wrong != "" {
					t.Errorf("%s: %s\n%s", when, wrong, g.site.err)
				} else if all {
					fmt.Printf("%-12s %-26s ok\n", client.name, when)
				}
			}
			use("after the login")
			g.restart()
			use("after a restart")
			if client.renews {
				g.later(15 * time.Minute)
				use("with a token that ended")
			}
			if n := g.visits(); n != 1 {
				t.Errorf("the owner was asked %d times", n)
			}
		})
	}
}
