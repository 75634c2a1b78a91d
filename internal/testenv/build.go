package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// A Program is a main package that tests run as a real process. Keep it in a package
// variable of the test: it is built at most once a test run, without cgo.
type Program struct {
	Package string // import path or relative directory, as go build takes it
	Tags    string // build tags, with commas

	once sync.Once
	path string
	out  []byte
	err  error
}

// Path builds the program on first use and returns the binary's path. A machine
// without the go command skips the test.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not installed")
	}
	p.once.Do(func() {
		// Not t.TempDir: the binary outlives the test that happened to be first.
		dir, err := os.MkdirTemp("", "testenv-")
		if err != nil {
			p.err = err
			return
		}
		p.path = filepath.Join(dir, "program")
		cmd := exec.Command("go", "build", "-tags", p.Tags, "-o", p.path, p.Package)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		p.out, p.err = cmd.CombinedOutput()
	})
	if p.err != nil {
		t.Fatalf("build %s: %v\n%s", p.Package, p.err, p.out)
	}
	return p.path
}

// Remove removes the binary. Call it at the end of TestMain.
func (p *Program) Remove() {
	if p.path != "" {
		os.RemoveAll(filepath.Dir(p.path))
	}
}
