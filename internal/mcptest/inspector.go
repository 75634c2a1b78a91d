package mcptest

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The environment variables a test run may set.
const (
	// CacheVar names the folder where peers are installed; without it the user's
	// cache folder is used.
	CacheVar = "LOCALMCP_TEST_CACHE"
	// NetVar, when 1, allows installing them from the npm registry.
	NetVar = "LOCALMCP_TEST_NPM"
)

//go:embed npm
var manifests embed.FS

const installLimit = 5 * time.Minute

// Inspector returns the beginning of a command line of the MCP inspector: append its
// options and the server's command. The test is skipped when the inspector is not
// installed and may not be.
func Inspector(t testing.TB) []string {
	t.Helper()
	node := Node(t)
	dir := installed(t, "inspector", filepath.Dir(node))
	return []string{node, filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "cli", "build", "index.js")}
}

// Inspect runs the inspector against a server's command and returns what it prints
// to stdout. The test fails when the inspector does.
func Inspect(t testing.TB, server []string, options ...string) string {
	t.Helper()
	line := append(append(Inspector(t), options...), server...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "MCP_AUTO_OPEN_ENABLED=false")
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if e, ok := err.(*exec.ExitError); ok {
			stderr = e.Stderr
		}
		t.Fatalf("inspector %v: %v\n%s\n%s", options, err, out, stderr)
	}
	return string(out)
}

// installed returns the folder of an npm manifest's packages, installing them first
// when that is allowed.
func installed(t testing.TB, name, path string) string {
	t.Helper()
	manifest, err := manifests.ReadFile("npm/" + name + "/package.json")
	if err != nil {
		t.Fatal(err)
	}
	cache := os.Getenv(CacheVar)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Skipf("no cache folder for the %s: %v", name, err)
		}
		cache = filepath.Join(user, "localmcp-test")
	}
	sum := sha256.Sum256(manifest)
	dir := filepath.Join(cache, name+"-"+hex.EncodeToString(sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if os.Getenv(NetVar) != "1" {
		t.Skipf("the %s is not installed; set %s=1 to install it from npm", name, NetVar)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	if err := install(t.Context(), npm, cache, dir, manifest, path); err != nil {
		t.Skipf("the %s cannot be installed: %v", name, err)
	}
	return dir
}

// install fills a temporary folder and renames it, so that what exists is whole.
func install(ctx context.Context, npm, cache, dir string, manifest []byte, path string) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, "installing-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.WriteFile(filepath.Join(tmp, "package.json"), manifest, 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--no-update-notifier")
	cmd.Dir = tmp
	cmd.Env = os.Environ()
	if path != "" {
		cmd.Env = append(cmd.Env, "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return nil // somebody else was faster
		}
		return err
	}
	return nil
}
