package main

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"localmcp/internal/testenv"
)

// built is the program as users have it.
var built = testenv.Program{Package: "."}

func TestMain(m *testing.M) { testscript.Main(tidy{m}, nil) }

// tidy removes the built program when the tests are done.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	defer built.Remove()
	return m.M.Run()
}

// commandLimit bounds every command of a test.
const commandLimit = time.Minute

// result is what a command left.
type result struct {
	status         int
	stdout, stderr string
}

// finish runs a command to its end.
func finish(t testing.TB, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(commandLimit, func() { c.Process.Kill() })
	defer late.Stop()
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}
