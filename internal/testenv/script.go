package testenv

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// ScriptCommands are what scripts that test a program's command line need beside the
// commands of testscript:
//
//	exits 2 status                          run the program and want an exit status
//	json trust=inspect projects.len=1 next  want the last output to be one JSON value, with
//	                                        these values, or members, in it
//	keep ID projects.0.projectId            put a member of it into a variable
func ScriptCommands(program string) map[string]func(*testscript.TestScript, bool, []string) {
	return map[string]func(*testscript.TestScript, bool, []string){
		"exits": func(ts *testscript.TestScript, neg bool, args []string) { scriptExits(program, ts, neg, args) },
		"json":  scriptJSON,
		"keep":  scriptKeep,
	}
}

func scriptExits(program string, ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || neg {
		ts.Fatalf("usage: exits STATUS ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(program, args[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%s %q: exit status %d, want %d", program, args[1:], got, want)
	}
}

// at finds a member of decoded JSON by a path such as projects.0.name; "len" gives a
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
