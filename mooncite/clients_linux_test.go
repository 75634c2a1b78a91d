package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
	"localmcp/mooncite/internal/install"
)

// withClients is a world with the sample histories and the real clients, which have
// configuration of their owner's in the form in which each writes it.
func withClients(t *testing.T) *world {
	t.Helper()
	clients := mcptest.Clients(t)
	w := sampleWorld(t)
	w.Set("PATH", clients+":/usr/bin:/bin")
	w.Set("TERM", "xterm")
	for _, name := range clientCommands {
		w.Set(name, "")
	}
	w.Write(t, ".codex/config.toml", otherCodex)
	w.Write(t, ".claude.json", otherClaude)
	w.Write(t, ".claude/settings.json", "{ \"theme\":   \"dark\" }\n")
	w.Write(t, ".claude/CLAUDE.md", "Be brief.\n")
	w.Write(t, ".pi/agent/settings.json", otherPi)
	w.Write(t, ".pi/agent/mcp.json", "{ \"mcpServers\": {} }\n")
	if err := os.Chmod(w.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// Codex would write the other server's arguments in its own way and lose its comment.
const otherCodex = "# my settings\nmodel = \"stand-in\"   # the model\n\n[mcp_servers.other]\ncommand = \"/bin/true\"\nargs = [ \"a\",  \"b\" ]   # as I like it\n"

// Pi would write its settings in its own form.
const otherPi = `{"theme":   "dark",
      "packages": [ {"source": "/srv/other",   "skills": []} ], "shown": 1.0}
`

// Claude Code keeps JSON that it writes like this itself, at every start.
const otherClaude = `{
  "numStartups": 3,
  "mcpServers": {
    "other": {
      "type": "stdio",
      "command": "/bin/other thing",
      "args": [
        "a",
        "b"
      ],
      "env": {
        "X": "1.0"
      }
    }
  }
}
`

// entry is the text of one of Claude Code's servers as the file has it.
func (w *world) claudeEntry(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(w.Path(".claude.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	servers := decode[struct {
		McpServers map[string]json.RawMessage `json:"mcpServers"`
	}](w.t, string(data)).McpServers
	return string(servers[name])
}

// client runs a client of the world in a directory of its own.
func (w *world) client(name string, args ...string) ran {
	w.t.Helper()
	dir := w.Path("work")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	path, _, _ := strings.Cut(w.Env()["PATH"], ":")
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*commandLimit)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(path, name), args...)
	c.Env, c.Dir = w.Environ(), dir
	c.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil {
		w.t.Fatalf("%s %v: %v", name, args, err)
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// originals are the files of a world that nothing of mooncite may change: the histories,
// and what belongs to the clients and other servers.
func (w *world) originals() map[string]string {
	w.t.Helper()
	files := map[string]string{}
	for _, dir := range []string{".claude/projects", ".codex/sessions", ".pi/agent/sessions", ".omp/agent/sessions", "incoming"} {
		err := filepath.WalkDir(w.Path(dir), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files[name] = testenv.Fingerprint(w.t, name)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.t.Fatal(err)
		}
	}
	if len(files) < 5 {
		w.t.Fatalf("there are histories of %d files only", len(files))
	}
	for _, name := range []string{".claude/settings.json", ".claude/CLAUDE.md", ".pi/agent/mcp.json", ".pi/agent/models.json"} {
		files[name] = testenv.Fingerprint(w.t, w.Path(name))
	}
	return files
}

// others are the entries of others in files that clients change when mooncite comes and
// goes: all but our own in Codex's and Pi's, and Claude Code's other server.
func (w *world) others() string {
	w.t.Helper()
	data, err := os.ReadFile(w.Path(".codex/config.toml"))
	if err != nil {
		w.t.Fatal(err)
	}
	ours := "\n[mcp_servers.mooncite]\ncommand = " + quoted(w.installed()) + "\nargs = [\"serve\"]\n"
	pi, err := os.ReadFile(w.Path(".pi/agent/settings.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSuffix(string(data), ours) + strings.Replace(string(pi), `, "../../.local/share/mooncite/package"`, "", 1) + w.claudeEntry("other")
}

// standIn tells Pi and OMP of the model.
func standIn(m model) string {
	return `{"providers":{"stand-in":{"baseUrl":` + quoted(m.URL+"/v1") + `,"api":"openai-completions","apiKey":"none",` +
		`"models":[{"id":"stand-in","name":"stand-in","reasoning":false,"input":["text"],"contextWindow":100000,"maxTokens":1000}]}}}`
}

// installed is the program that clients start.
func (w *world) installed() string { return w.Path(".local/share/mooncite/package/bin/mooncite") }

// The whole way with the real clients: install, use with a model, disable, uninstall,
// purge. No history and nothing of other servers is ever changed.
func TestRealClients(t *testing.T) {
	w := withClients(t)
	m := newModel(t)
	w.Write(t, ".pi/agent/models.json", standIn(m))
	w.Write(t, ".omp/agent/models.yml", standIn(m)) // JSON is YAML
	w.Write(t, ".codex/config.toml", otherCodex+fmt.Sprintf("\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = %q\nwire_api = \"responses\"\n", m.URL+"/v1"))
	originals, others := w.originals(), w.others()
	unchanged := func(after string) {
		t.Helper()
		now := w.originals()
		for name, was := range originals {
			if now[name] != was {
				t.Errorf("%s changed %s:\n%s%s", after, name, was, now[name])
			}
		}
		if now := w.others(); now != others {
			t.Errorf("%s changed entries of others:\n%s\nbefore:\n%s", after, now, others)
		}
	}
	does := func(want string, args ...string) {
		t.Helper()
		out := decode[install.Result](t, w.must(0, append(args, "--json")...).stdout)
		var states []string
		for _, f := range out.Registrations {
			states = append(states, string(f.State))
		}
		if got := strings.Join(states, " "); got != want {
			t.Errorf("after %s the clients are %s, want %s", args[0], got, want)
		}
		unchanged(args[0])
	}

	// OMP alone first: it also finds the servers of other clients.
	for _, name := range clientCommands {
		w.Set(name, map[bool]string{false: "/nowhere"}[strings.Contains(name, "_OMP_")])
	}
	does("unavailable exact unavailable unavailable", "install")
	t.Run("OMP", func(t *testing.T) {
		r := w.client("omp", "plugin", "list")
		if !strings.Contains(r.stdout, "mooncite@") {
			t.Errorf("omp plugin list: %s%s", r.stdout, r.stderr)
		}
		m.Forget()
		r = w.client("omp", "-p", "--model", "stand-in/stand-in", "--no-lsp", "--no-session", "what was that error?")
		m.asked(t, r)
	})
	for _, name := range clientCommands {
		w.Set(name, "")
	}
	does("exact exact exact exact", "install")

	t.Run("Claude Code", func(t *testing.T) {
		if r := w.client("claude", "mcp", "list"); !strings.Contains(r.stdout, "mooncite: "+w.installed()+" serve - ✔") {
			t.Errorf("claude mcp list: %s%s", r.stdout, r.stderr)
		}
		w.Set("ANTHROPIC_BASE_URL", m.URL)
		w.Set("ANTHROPIC_API_KEY", "none")
		w.Set("ENABLE_TOOL_SEARCH", "false")
		w.Set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
		w.Set("DISABLE_AUTOUPDATER", "1")
		m.Forget()
		r := w.client("claude", "-p", "what was that error?", "--allowedTools", "mcp__mooncite__mooncite_recall,mcp__mooncite__mooncite_inspect")
		m.asked(t, r)
	})
	t.Run("Codex", func(t *testing.T) {
		m.Forget()
		r := w.client("codex", "exec", "--skip-git-repo-check", "-c", `model_provider="stand-in"`, "-c", `mcp_servers.other.enabled=false`, "--dangerously-bypass-approvals-and-sandbox", "what was that error?")
		m.asked(t, r)
	})
	t.Run("Pi", func(t *testing.T) {
		m.Forget()
		r := w.client("pi", "-p", "--provider", "stand-in", "--model", "stand-in", "--no-session", "what was that error?")
		m.asked(t, r)
	})
	unchanged("use")

	if r := w.status().Registrations; r.Pi != "exact" || r.OMP != "exact" || r.Codex != "exact" || r.ClaudeCode != "exact" || r.ProbedAt == nil {
		t.Errorf("status says %+v", r)
	}
	does("missing missing missing missing", "disable")
	does("exact exact exact exact", "install")
	does("missing missing missing missing", "uninstall")
	for _, gone := range []string{".local/share/mooncite", ".local/bin/mooncite", ".omp/plugins/node_modules/mooncite"} {
		if _, err := os.Lstat(w.Path(gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", gone, err)
		}
	}
	if data, err := os.ReadFile(w.Path(".pi/agent/settings.json")); err != nil || string(data) != otherPi {
		t.Errorf("Pi's settings are %s (%v)", data, err)
	}
	w.must(0, "purge", "--yes")
	if _, err := os.Lstat(w.state()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state is still there (%v)", err)
	}
	unchanged("purge")

	// Servers and packages of the name that others made stay as they are.
	w.Write(t, "theirs/package.json", `{"name":"mooncite","version":"4.0.6"}`)
	for _, made := range []ran{
		w.client("claude", "mcp", "add", "--scope", "user", "mooncite", "--", "/bin/true", "serve"),
		w.client("codex", "mcp", "add", "mooncite", "--", w.installed(), "serve", "--strict"),
		w.client("omp", "plugin", "link", w.Path("theirs")),
		w.client("pi", "mcp", "add", "mooncite", "--", w.installed(), "serve"),
	} {
		if made.status != 0 {
			t.Fatalf("%s%s", made.stdout, made.stderr)
		}
	}
	if r := w.status().Registrations; r.Pi != "conflict" || r.OMP != "conflict" || r.Codex != "conflict" || r.ClaudeCode != "conflict" {
		t.Errorf("with servers of others status says %+v", r)
	}
	theirs := w.claudeEntry("mooncite")
	if r := w.must(1, "install"); !strings.Contains(r.stderr, "pi mcp remove mooncite") {
		t.Errorf("install says %s", r.stderr)
	}
	if now := w.claudeEntry("mooncite"); now != theirs {
		t.Errorf("another's server was changed: %s, before %s", now, theirs)
	}
}

// What people write by hand and the real clients would write in their own form comes back
// to the byte: settings of Pi without a list of packages, Codex's comments. Where Codex has
// its servers in an inline table, the file stays as Codex makes it, and Codex starts.
func TestRealClientsSettings(t *testing.T) {
	for _, c := range []struct{ pi, codex, after string }{
		{"{\r\n\t\"theme\":   \"dark\",\r\n\r\n\t\"shown\": 1.0\r\n}\r\n", otherCodex, otherCodex},
		{"{ \"packages\": [ ] }\n", "mcp_servers = { other = { command = \"/bin/true\" } }\n", "[mcp_servers ]\nother = { command = \"/bin/true\" }\n"},
	} {
		w := withClients(t)
		for _, name := range []string{"MOONCITE_OMP_COMMAND", "MOONCITE_CLAUDE_COMMAND"} {
			w.Set(name, "/nowhere")
		}
		w.Write(t, ".pi/agent/settings.json", c.pi)
		w.Write(t, ".codex/config.toml", c.codex)
		w.must(0, "install")
		if r := w.status().Registrations; r.Pi != "exact" || r.Codex != "exact" {
			t.Errorf("with %q and %q status says %+v", c.pi, c.codex, r)
		}
		if r := w.client("codex", "mcp", "list"); r.status != 0 {
			t.Errorf("with %q Codex says %s", c.codex, r.stderr)
		}
		w.must(0, "uninstall")
		for name, want := range map[string]string{".pi/agent/settings.json": c.pi, ".codex/config.toml": c.after} {
			if data, err := os.ReadFile(w.Path(name)); err != nil || string(data) != want {
				t.Errorf("%s is %q, want %q (%v)", name, data, want, err)
			}
		}
	}
}
