package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"localmcp/internal/testenv"
)

// TestScripts runs the command line as a person would. Each script has a home of its own.
func TestScripts(t *testing.T) {
	program := built.Path(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			home, bin := filepath.Join(e.WorkDir, "home"), filepath.Join(e.WorkDir, "bin")
			if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(program, filepath.Join(bin, "dodo")), os.MkdirAll(home, 0o700), os.Chmod(home, 0o700)); err != nil {
				return err
			}
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+"/usr/bin"+string(filepath.ListSeparator)+"/bin")
			e.Setenv("HOME", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("STATE", filepath.Join(home, ".local/state/dodo"))
			return nil
		},
		Cmds: testenv.ScriptCommands("dodo"),
	})
}

// Help is an interface: people read it, scripts parse it.
func TestHelp(t *testing.T) {
	h := testenv.NewHome(t)
	for _, words := range []string{
		"", "status", "stop", "pending", "approve", "deny", "trust", "access-mode", "access", "access list", "access set", "access remove", "audit", "audit verify",
		"limits", "config", "config get", "config set", "config list", "project", "project add", "project list", "project info", "project remove", "changes", "rollback", "recover",
		"schedule", "schedule list", "schedule show", "schedule add", "schedule approve", "schedule revoke", "schedule pause", "schedule resume", "schedule history", "schedule preview", "connect", "doctor", "version", "stdio",
		"start", "auth", "auth pending", "auth approve", "auth deny", "auth list", "auth revoke", "auth clients", "auth add-client", "auth remove-client", "auth rotate-key",
	} {
		name := "dodo"
		if words != "" {
			name += "-" + strings.ReplaceAll(words, " ", "-")
		}
		t.Run(name, func(t *testing.T) {
			c := exec.Command(built.Path(t), append(strings.Fields(words), "--help")...)
			c.Env = h.Environ()
			r := finish(t, c)
			if r.status != 0 || r.stderr != "" {
				t.Errorf("status %d, %s", r.status, r.stderr)
			}
			testenv.Golden(t, filepath.Join("testdata", "help", name+".txt"), []byte(r.stdout))
		})
	}
	if entries, err := os.ReadDir(h.Dir); err != nil || len(entries) != 2 {
		t.Errorf("help left something behind: %v, %v", entries, err)
	}
}
