package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
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

// Claude Code and Pi keep JSON, and write it like this themselves.
const (
	otherClaude = `{
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
	otherPi = `{
  "theme": "dark",
  "packages": [
    {
      "source": "/srv/other",
      "skills": []
    }
  ]
}`
)

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
	return w.clientIn(w.Path("work"), "", name, args...)
}

func (w *world) clientIn(dir, input, name string, args ...string) ran {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	path, _, _ := strings.Cut(w.Env()["PATH"], ":")
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*commandLimit)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(path, name), args...)
	c.Env, c.Dir, c.Stdin = w.Environ(), dir, strings.NewReader(input)
	c.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil {
		w.t.Fatalf("%s %v: %v", name, args, err)
	}
	return ran{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// registrations are the four states as the last command found them.
func (w *world) registrations() string {
	w.t.Helper()
	r := w.status().Registrations
	return strings.Join([]string{r.Pi, r.OMP, r.Codex, r.ClaudeCode}, " ")
}

// The whole way with the real clients: install, use with a model, disable, uninstall,
// purge. No history and nothing of other servers is ever changed.
func TestRealClients(t *testing.T) {
	w := withClients(t)
	histories := []string{".claude/projects", ".codex/sessions", ".pi/agent/sessions", ".omp/agent/sessions", "incoming"}
	kept := func() string {
		var b strings.Builder
		for _, dir := range histories {
			b.WriteString(testenv.Fingerprint(t, w.Path(dir)))
		}
		for _, file := range []string{".codex/config.toml", ".claude/settings.json", ".claude/CLAUDE.md", ".pi/agent/mcp.json"} {
			data, err := os.ReadFile(w.Path(file))
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(strings.TrimSuffix(string(data), codexEntry(w)))
		}
		b.WriteString(w.claudeEntry("other"))
		return b.String()
	}
	before := kept()
	unchanged := func(after string) {
		t.Helper()
		if now := kept(); now != before {
			t.Errorf("%s changed something:\n%s\nbefore:\n%s", after, now, before)
		}
	}

	w.must(0, "install")
	unchanged("install")
	if got := w.registrations(); got != "exact exact exact exact" {
		t.Fatalf("after install the clients are %s", got)
	}
	w.must(0, "install")
	unchanged("the second install")

	t.Run("claude", func(t *testing.T) {
		if r := w.client("claude", "mcp", "list"); !strings.Contains(r.stdout, "mooncite: "+w.Path(".local/share/mooncite/package/bin/mooncite")+" serve - ✔") {
			t.Errorf("claude mcp list: %s%s", r.stdout, r.stderr)
		}
	})
}

// codexEntry is what Codex's file has more when mooncite is registered.
func codexEntry(w *world) string {
	return "\n[mcp_servers.mooncite]\ncommand = \"" + w.Path(".local/share/mooncite/package/bin/mooncite") + "\"\nargs = [\"serve\"]\n"
}
