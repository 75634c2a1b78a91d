package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localmcp/internal/mcptest"
)

// TestNpmThroughTheProxy: in a command npm installs what a lock file names, from its registry
// through the proxy, when the owner's rules open that, and a package's tests run with it. When
// they do not, nothing is installed and the job names what was refused.
//
// The registry is the one that npm has here. Its host may have an address that is not public,
// which a rule must open by itself (ADR 0018), and a certificate of an authority of its own,
// which is given to commands as any owner can.
func TestNpmThroughTheProxy(t *testing.T) {
	if os.Getenv(mcptest.NetVar) != "1" {
		t.Skipf("set %s=1 to install from npm", mcptest.NetVar)
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm here")
	}
	asked, err := exec.Command(npm, "config", "get", "registry").Output()
	if err != nil {
		t.Fatal(err)
	}
	registry, err := url.Parse(strings.TrimSpace(string(asked)))
	if err != nil || registry.Hostname() == "" {
		t.Fatalf("npm's registry is %q: %v", asked, err)
	}
	port := registry.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[registry.Scheme]
	}
	target := net.JoinHostPort(registry.Hostname(), port)
	addresses, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", registry.Hostname())
	if err != nil {
		t.Fatalf("%s=1, and npm's registry has no address: %v", mcptest.NetVar, err)
	}
	rules := []string{target}
	for _, a := range addresses {
		rules = append(rules, net.JoinHostPort(a.Unmap().String(), port))
	}

	m := newMachine(t)
	dir := m.workspace()
	m.Set("npm_config_registry", registry.String())
	allowed := []string{"npm_config_registry"}
	if file := os.Getenv("NODE_EXTRA_CA_CERTS"); file != "" { // which no command gets
		authorities, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m.Set("npm_config_cafile", m.Write(t, "authorities/all.crt", string(authorities)))
		m.ok(nil, "config", "set", "sandboxReadPaths", m.Path("authorities"))
		allowed = append(allowed, "npm_config_cafile")
	}
	m.ok(nil, append([]string{"config", "set", "envAllowlist"}, allowed...)...)
	m.Write(t, "work/package.json", `{
  "name": "work", "version": "1.0.0", "private": true,
  "dependencies": {"left-pad": "1.3.0"},
  "scripts": {"test": "node test.js"}
}`)
	m.Write(t, "work/test.js", `require("assert").strictEqual(require("left-pad")("7", 3, "0"), "007"); console.log("padded")`)
	lock := exec.Command(npm, "install", "--package-lock-only", "--no-audit", "--no-fund", "--no-update-notifier")
	lock.Dir, lock.Env = dir, append(m.Environ(), "NODE_EXTRA_CA_CERTS="+os.Getenv("NODE_EXTRA_CA_CERTS"))
	if r := finish(t, lock); r.status != 0 {
		t.Fatalf("npm makes no lock file: %+v", r)
	}
	const install = `"waitMs":120000,"command":"npm ci --no-audit --no-fund --no-update-notifier --fetch-retries=0 2>&1"`

	t.Run("refused", func(t *testing.T) {
		m.ok(nil, "config", "set", "egressAllow", "elsewhere.invalid:443")
		e := m.speak("legacy", dir).fine("run_command", install)
		warnings := fmt.Sprint(e.Warnings)
		if e.Data["exitCode"] == 0.0 || !strings.Contains(warnings, "The command was not let reach: "+target) {
			t.Errorf("%v, %v", e.Data, e.Warnings)
		}
		if _, err := os.Lstat(filepath.Join(dir, "node_modules", "left-pad")); err == nil {
			t.Error("it is installed all the same")
		}
	})
	t.Run("allowed", func(t *testing.T) {
		m.ok(nil, append([]string{"config", "set", "egressAllow"}, rules...)...)
		c := m.speak("legacy", dir)
		e := c.fine("run_command", install)
		if e.Data["exitCode"] != 0.0 || e.text("isolation") == "none" {
			t.Fatalf("%v, %v", e.Data, e.Warnings)
		}
		var installed struct{ Name, Version string }
		if err := json.Unmarshal([]byte(m.read("work/node_modules/left-pad/package.json")), &installed); err != nil || installed.Version != "1.3.0" {
			t.Errorf("%+v, %v", installed, err)
		}
		e = c.fine("run_command", `"waitMs":60000,"network":false,"command":"npm test --silent"`)
		if e.Data["exitCode"] != 0.0 || e.text("stdout") != "padded\n" {
			t.Errorf("%v, %v", e.Data, e.Warnings)
		}
	})
}
