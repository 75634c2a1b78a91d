package mcptest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Clients returns a directory for the beginning of a PATH, with the commands claude,
// codex, pi and omp: the real clients, in the versions of the manifests. The test is
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
	script := func(command, interpreter, program string) {
		t.Helper()
		text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' \"$@\"\n", interpreter, program)
		syscall.ForkLock.RLock() // a child of another test would keep it from being run
		err := os.WriteFile(filepath.Join(bin, command), []byte(text), 0o755)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
	}
	link("claude", "claude", "@anthropic-ai/claude-code-linux-*/claude")
	link("codex", "codex", "@openai/codex-linux-*/vendor/*/bin/codex")
	bun := link("bun", "omp", "bun/bin/bun.exe")
	script("omp", bun, filepath.Join(installed(t, "omp", nodeDir), "node_modules", "@oh-my-pi", "pi-coding-agent", "dist", "cli.js"))
	script("pi", node, filepath.Join(PiPackages(t), "@earendil-works", "pi-coding-agent", "dist", "cli.js"))
	return bin
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
