package sqlitedb_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The driver is C translated to Go for one version of its runtime; with another
// version it may read and write wrongly without a word.
func TestRuntimeIsTheOneTheDriverAsksFor(t *testing.T) {
	ours, err := os.ReadFile("../../go.mod")
	must(t, err)
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Skip("the go command is not installed")
	}
	driver := required(t, ours, "modernc.org/sqlite")
	name := filepath.Join(strings.TrimSpace(string(out)), "cache/download/modernc.org/sqlite/@v", driver+".mod")
	theirs, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		t.Skip("the driver's go.mod is not in the module cache")
	}
	must(t, err)
	if got, want := required(t, ours, "modernc.org/libc"), required(t, theirs, "modernc.org/libc"); got != want {
		t.Errorf("go.mod has modernc.org/libc %s, but modernc.org/sqlite %s asks for %s", got, driver, want)
	}
}

func required(t *testing.T, mod []byte, path string) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(path) + ` (v\S+)`).FindSubmatch(mod)
	if m == nil {
		t.Fatalf("no version of %s is required", path)
	}
	return string(m[1])
}
