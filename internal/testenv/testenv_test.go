package testenv_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/internal/testenv"
)

func TestHomeIsIsolated(t *testing.T) {
	h := testenv.NewHome(t)
	h.Set("CODEX_HOME", h.Path("codex"))
	env := h.Env()
	for key, value := range env {
		if key != "PATH" && key != "LANG" && key != "TZ" && !strings.HasPrefix(value, h.Dir) {
			t.Errorf("%s=%s is outside the home", key, value)
		}
	}
	env["HOME"] = "/"
	if h.Env()["HOME"] != h.Dir {
		t.Error("Env gives away the home's own map")
	}
	if got := h.Environ(); len(got) != len(env) || !strings.HasPrefix(got[0], "CODEX_HOME=") {
		t.Errorf("Environ gives %q", got)
	}
}

func TestFingerprintSeesEveryChange(t *testing.T) {
	h := testenv.NewHome(t)
	file := h.Write(t, "tree/a/x", "one")
	tree := h.Path("tree")
	last := testenv.Fingerprint(t, tree)
	if diff := cmp.Diff(last, testenv.Fingerprint(t, tree)); diff != "" {
		t.Fatalf("reading changed it: %s", diff)
	}
	at := time.Now()
	for name, change := range map[string]func() error{
		"mode": func() error { return os.Chmod(file, 0o640) },
		"time": func() error { return os.Chtimes(file, at, at.Add(time.Hour)) },
		"content": func() error {
			st, err := os.Stat(file)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte("two"), 0o600); err != nil {
				return err
			}
			return os.Chtimes(file, at, st.ModTime())
		},
		"link": func() error { return os.Symlink("x", h.Path("tree/a/ln")) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		now := testenv.Fingerprint(t, tree)
		if now == last {
			t.Errorf("a change of %s is not seen", name)
		}
		last = now
	}
}

func TestGoldenAcceptsWhatIsWritten(t *testing.T) {
	testenv.Golden(t, "testdata/hello.txt", []byte("hello\n"))
}

var hello = testenv.Program{Package: "./testdata/hello"}

func TestProgramIsBuiltOnce(t *testing.T) {
	first := hello.Path(t)
	t.Cleanup(hello.Remove)
	if second := hello.Path(t); second != first {
		t.Errorf("built twice: %s, %s", first, second)
	}
	out, err := exec.Command(first).Output()
	if err != nil || string(out) != "hello\n" {
		t.Errorf("it says %q, %v", out, err)
	}
}
