package walls_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/walls"
	"localmcp/internal/testenv"
)

// TestFirst looks how much of the program starts before the first process of a sandbox does
// its work: each start of a command waits for that.
func TestFirst(t *testing.T) {
	dodo := testenv.Program{Package: "localmcp/dodo"}
	t.Cleanup(dodo.Remove)
	cmd := exec.Command(dodo.Path(t))
	cmd.Args = []string{walls.HelperName} // and no socket: it fails as soon as it runs
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != walls.ExitFailed {
		t.Fatalf("%v\n%s", err, out)
	}
	heavy := []string{"modernc.org/libc", "modernc.org/sqlite/lib", "net", "net/http", "regexp", "github.com/google/jsonschema-go/jsonschema", "localmcp/dodo/internal/config", "main"}
	traced := false
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "init" {
			continue
		}
		traced = true
		if slices.Contains(heavy, f[1]) {
			t.Errorf("%s starts before the first process of a sandbox", f[1])
		}
	}
	if !traced {
		t.Errorf("there is no trace of what started:\n%s", out)
	}
}
