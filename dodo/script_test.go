package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scriptExits,
			"json":  scriptJSON,
			"keep":  scriptKeep,
		},
	})
}

// scriptExits runs dodo and wants an exit status: exits 2 status.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: exits STATUS ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec("dodo", args[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("dodo %q: exit status %d, want %d", args[1:], got, want)
	}
}

// at finds a member of decoded JSON by a path such as clients.0.clientId; "len" gives a
// length.
func at(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			member, ok := x[step]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			if step == "len" {
				v = len(x)
				continue
			}
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func stdoutJSON(ts *testscript.TestScript) any {
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	ts.Check(d.Decode(&v))
	if d.More() {
		ts.Fatalf("more than one JSON value")
	}
	return v
}

// scriptJSON wants the last output to be one JSON value and members of it to have values:
// json trust=inspect projects.len=1.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	v := stdoutJSON(ts)
	for _, arg := range args {
		path, want, ok := strings.Cut(arg, "=")
		got, there := at(v, path)
		if ok && (!there || fmt.Sprint(got) != want) || !ok && !there {
			ts.Fatalf("%s is %v (there: %t), want %s", path, got, there, want)
		}
	}
}

// scriptKeep puts a member of the last output into a variable: keep ID projectId.
func scriptKeep(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: keep NAME PATH")
	}
	v, ok := at(stdoutJSON(ts), args[1])
	if !ok {
		ts.Fatalf("%s is not there", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// Help is an interface: people read it, scripts parse it.
func TestHelp(t *testing.T) {
	h := testenv.NewHome(t)
	for _, words := range []string{
		"", "status", "stop", "pending", "approve", "deny", "trust", "access-mode", "access", "access list", "access set", "access remove", "audit", "audit verify",
		"limits", "config", "config get", "config set", "config list", "project", "project add", "project list", "project info", "project remove", "changes", "rollback", "recover", "connect", "doctor", "version", "stdio",
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
