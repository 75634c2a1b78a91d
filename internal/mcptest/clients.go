package mcptest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Clients returns a directory for the beginning of a PATH, with the commands claude,
// codex, pi, omp and inspector: the real clients, in the versions of the manifests. The test is
// skipped when one is not installed and may not be.
func Clients(t testing.TB) string {
	t.Helper()
	node := Node(t)
	nodeDir := filepath.Dir(node)
	bin := t.TempDir()
	link := func(command, client, pattern string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(installed(t, client, nodeDir), "node_modules", filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			t.Fatalf("the packages of %s have no %s (%v)", client, pattern, err)
		}
		if err := os.Symlink(found[0], filepath.Join(bin, command)); err != nil {
			t.Fatal(err)
		}
		return found[0]
	}
	link("claude", "claude", "@anthropic-ai/claude-code-linux-*/claude")
	script(t, bin, "inspector", node, Inspector(t)[1])
	link("codex", "codex", "@openai/codex-linux-*/vendor/*/bin/codex")
	bun := link("bun", "omp", "bun/bin/bun.exe")
	script(t, bin, "omp", bun, filepath.Join(installed(t, "omp", nodeDir), "node_modules", "@oh-my-pi", "pi-coding-agent", "dist", "cli.js"))
	script(t, bin, "pi", node, filepath.Join(PiPackages(t), "@earendil-works", "pi-coding-agent", "dist", "cli.js"))
	return bin
}

// MoreClients adds the commands gemini and mcp-remote to the directory of [Clients].
func MoreClients(t testing.TB, bin string) {
	t.Helper()
	node := Node(t)
	script(t, bin, "gemini", node, filepath.Join(installed(t, "gemini", filepath.Dir(node)), "node_modules", "@google", "gemini-cli", "bundle", "gemini.js"))
	script(t, bin, "mcp-remote-client", node, filepath.Join(installed(t, "remote", filepath.Dir(node)), "node_modules", "mcp-remote", "dist", "client.js"))
}

// script writes a command that runs a program with its interpreter.
func script(t testing.TB, bin, command, interpreter, program string) {
	t.Helper()
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' \"$@\"\n", interpreter, program)
	syscall.ForkLock.RLock() // a child of another test would keep it from being run
	err := os.WriteFile(filepath.Join(bin, command), []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// PiPackages is the node_modules directory with Pi, its types and TypeScript.
func PiPackages(t testing.TB) string {
	t.Helper()
	return filepath.Join(installed(t, "pi", filepath.Dir(Node(t))), "node_modules")
}

// TypeScript returns the beginning of a command line of the TypeScript compiler.
func TypeScript(t testing.TB) []string {
	t.Helper()
	return []string{Node(t), filepath.Join(PiPackages(t), "typescript", "bin", "tsc")}
}

// Node is the program of a Node that all of them can run on.
func Node(t testing.TB) string {
	t.Helper()
	return filepath.Join(installed(t, "node", ""), "node_modules", "node", "bin", "node")
}
