package testenv

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A Home is an isolated home directory and the environment that points to it.
type Home struct {
	Dir string // absolute, without links, mode 0700
	env map[string]string
}

// NewHome makes a home that is removed with the test. Its environment has HOME, the
// XDG directories below it, TMPDIR, PATH, LANG and TZ, and nothing else.
func NewHome(t testing.TB) *Home {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{Dir: filepath.Join(dir, "home")}
	h.env = map[string]string{
		"HOME":            h.Dir,
		"XDG_CONFIG_HOME": h.Path(".config"),
		"XDG_STATE_HOME":  h.Path(".local/state"),
		"XDG_DATA_HOME":   h.Path(".local/share"),
		"XDG_CACHE_HOME":  h.Path(".cache"),
		"XDG_RUNTIME_DIR": h.Path("run"),
		"TMPDIR":          h.Path("tmp"),
		"PATH":            os.Getenv("PATH"),
		"LANG":            "C.UTF-8",
		"TZ":              "UTC",
	}
	for _, d := range []string{h.Path("run"), h.Path("tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// Path is a place in the home, by its slash-separated relative name.
func (h *Home) Path(rel string) string { return filepath.Join(h.Dir, filepath.FromSlash(rel)) }

// Set adds a variable to the environment.
func (h *Home) Set(key, value string) { h.env[key] = value }

// Env returns a copy of the environment.
func (h *Home) Env() map[string]string {
	c := make(map[string]string, len(h.env))
	for k, v := range h.env {
		c[k] = v
	}
	return c
}

// Environ returns the environment as os/exec takes it, sorted.
func (h *Home) Environ() []string {
	list := make([]string, 0, len(h.env))
	for k, v := range h.env {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}

// Write makes a file in the home, and the directories above it, closed to others.
// It returns the file's path.
func (h *Home) Write(t testing.TB, rel, text string) string {
	t.Helper()
	name := h.Path(rel)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
