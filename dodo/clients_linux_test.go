package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
)

const modelAnswer = "The milk is spelled right now."

var (
	workspacePattern = regexp.MustCompile(`ws_[0-9a-f]{20}`)
	epochPattern     = regexp.MustCompile(`boot_[0-9a-z]{16}`)
	hashPattern      = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
)

// editor is a model that looks at the project, reads a file, edits it, and says so.
func editor(t *testing.T) *mcptest.Model {
	return mcptest.NewModel(t, modelAnswer, func(tools, results []string) mcptest.Move {
		with := func(args map[string]any) map[string]any {
			args["workspaceId"], args["workspaceEpoch"] = workspacePattern.FindString(results[0]), epochPattern.FindString(results[0])
			return args
		}
		switch len(results) {
		case 0:
			return mcptest.Move{Name: mcptest.Named(tools, "project_overview"), Args: map[string]any{}}
		case 1:
			return mcptest.Move{Name: mcptest.Named(tools, "read_files"), Args: with(map[string]any{"files": []any{map[string]any{"path": "list.md"}}})}
		case 2:
			return mcptest.Move{Name: mcptest.Named(tools, "edit_file"), Args: with(map[string]any{
				"path": "list.md", "expectedHash": hashPattern.FindString(results[1]),
				"edits": []any{map[string]any{"find": "mlik", "replace": "milk"}},
			})}
		}
		return mcptest.Move{}
	})
}

// TestRealClients: Claude Code and Codex are told of dodo by dodo connect, list its tools,
// and a model behind each edits a file.
func TestRealClients(t *testing.T) {
	path := mcptest.Clients(t)
	m := newMachine(t)
	m.Set("PATH", path+":/usr/bin:/bin")
	m.Set("TERM", "xterm")
	if err := os.Chmod(m.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	model := editor(t)
	m.Write(t, ".codex/config.toml", fmt.Sprintf("model = \"stand-in\"\n\n[model_providers.stand-in]\nname = \"stand-in\"\nbase_url = %q\nwire_api = \"responses\"\n", model.URL+"/v1"))
	m.Set("ANTHROPIC_BASE_URL", model.URL)
	m.Set("ANTHROPIC_API_KEY", "none")
	m.Set("ENABLE_TOOL_SEARCH", "false")
	m.Set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
	m.Set("DISABLE_AUTOUPDATER", "1")
	dir := m.dir("work")
	file := filepath.Join(dir, "list.md")
	run := func(name string, args ...string) result {
		t.Helper()
		c := exec.Command(filepath.Join(path, name), args...)
		c.Env, c.Dir = m.Environ(), dir
		return finish(t, c)
	}
	for _, client := range []struct {
		name, connect string
		use           []string
	}{
		{"claude", "claude-code", []string{"-p", "mend the list", "--allowedTools", "mcp__dodo__project_overview,mcp__dodo__read_files,mcp__dodo__edit_file"}},
		{"codex", "codex", []string{"exec", "--skip-git-repo-check", "-c", `model_provider="stand-in"`, "--dangerously-bypass-approvals-and-sandbox", "mend the list"}},
	} {
		t.Run(client.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte("bread\r\nmlik\r\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if r := m.dodo("connect", client.connect, "--yes"); r.status != 0 {
				t.Fatalf("connect: %s%s", r.stdout, r.stderr)
			}
			if r := run(client.name, "mcp", "list"); r.status != 0 || !strings.Contains(r.stdout, "dodo") {
				t.Errorf("mcp list: %s%s", r.stdout, r.stderr)
			}
			model.Forget()
			r := run(client.name, client.use...)
			tools, results, strange := model.Seen()
			if r.status != 0 || !strings.Contains(r.stdout, modelAnswer) {
				t.Errorf("the client ends with %d and says %.2000s\n%.2000s\ntools %v, results %.3000q, strange %v", r.status, r.stdout, r.stderr, tools, results, strange)
			}
			if got, _ := os.ReadFile(file); string(got) != "bread\r\nmilk\r\n" {
				t.Errorf("the file is %q; the tools answered %.3000q", got, results)
			}
		})
	}
}
