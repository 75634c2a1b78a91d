package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"localmcp/internal/testenv"
)

// TestScripts runs the command line as a person would. Each script has a home of its
// own; "histories" puts the sample conversations into it.
func TestScripts(t *testing.T) {
	samples, err := filepath.Abs("../samples/home")
	if err != nil {
		t.Fatal(err)
	}
	program := built.Path(t) // not the test binary: with cgo in it, it could not be confined
	clients, err := filepath.Abs("internal/install/testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	commands := testenv.ScriptCommands("mooncite")
	commands["histories"] = scriptHistories
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values["samples"] = samples
			home := filepath.Join(e.WorkDir, "home")
			bin := filepath.Join(e.WorkDir, "bin")
			if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(program, filepath.Join(bin, "mooncite"))); err != nil {
				return err
			}
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", home)
			e.Setenv("TZ", "UTC")
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("STATE", filepath.Join(home, ".local/state/mooncite"))
			e.Setenv("CONFIG", filepath.Join(home, ".config/mooncite"))
			e.Setenv("CLIENTS", clients)
			for _, name := range clientCommands {
				e.Setenv(name, "/nowhere")
			}
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			return os.Chmod(home, 0o700)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: commands,
	})
}

// scriptHistories copies the sample home.
func scriptHistories(ts *testscript.TestScript, neg bool, args []string) {
	samples, _ := ts.Value("samples").(string)
	ts.Check(os.CopyFS(ts.Getenv("HOME"), os.DirFS(samples)))
}

// Help is an interface: people read it, scripts parse it.
func TestHelp(t *testing.T) {
	h := testenv.NewHome(t)
	for _, words := range []string{"", "serve", "recall", "inspect", "status", "rebuild", "source", "source list", "source add", "source remove", "forget", "memory", "memory enable", "memory disable", "memory status", "memory purge", "install", "disable", "uninstall", "purge", "version"} {
		name := "mooncite"
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
			short := exec.Command(built.Path(t), append([]string{"help"}, strings.Fields(words)...)...)
			short.Env = h.Environ()
			if s := finish(t, short); s.stdout != r.stdout {
				t.Errorf("`help %s` says something else than `%s --help`", words, words)
			}
		})
	}
	if entries, err := os.ReadDir(h.Dir); err != nil || len(entries) != 2 {
		t.Errorf("help left something behind: %v, %v", entries, err)
	}
}
