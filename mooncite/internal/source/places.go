package source

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/evidence"
)

// Places are the directories an environment leads to.
type Places struct {
	StateDir  string // mooncite's own state; no root may overlap it
	ConfigDir string // holds sources.json

	home      string
	fixed     []Registration // Pi and OMP, always there
	automatic []Registration // those in use, in their order
	known     map[string]bool
}

// A Registration is an origin and the directory its history is in.
type Registration struct {
	Origin evidence.Origin
	Dir    string // absolute, normalised
}

// PlacesOf reads the environment: HOME, PI_AGENT_DIR, PI_CODING_AGENT_DIR (OMP),
// CODEX_HOME, CLAUDE_CONFIG_DIR, XDG_STATE_HOME, XDG_CONFIG_HOME, MOONCITE_STATE_DIR and
// MOONCITE_AUTO_SOURCES. A relative XDG directory is ignored, as that standard asks;
// a relative directory of a client gives a refused root. A HOME that is missing, or
// MOONCITE_STATE_DIR that is relative, is a [Configuration] fault.
func PlacesOf(env map[string]string) (Places, error) {
	home := env["HOME"]
	if !filepath.IsAbs(home) {
		return Places{}, fault.New(Configuration, "HOME is not set to an absolute path").
			WithHint("set HOME to your home directory")
	}
	dir := func(name, otherwise string) string {
		if v := env[name]; v != "" {
			return filepath.Clean(v)
		}
		return filepath.Join(home, otherwise)
	}
	xdg := func(name, otherwise string) string {
		if v := env[name]; filepath.IsAbs(v) {
			return filepath.Clean(v)
		}
		return filepath.Join(home, otherwise)
	}
	p := Places{
		StateDir:  filepath.Join(xdg("XDG_STATE_HOME", ".local/state"), "mooncite"),
		ConfigDir: filepath.Join(xdg("XDG_CONFIG_HOME", ".config"), "mooncite"),
		home:      filepath.Clean(home),
		known:     map[string]bool{},
	}
	if v := env["MOONCITE_STATE_DIR"]; v != "" {
		if !filepath.IsAbs(v) {
			return Places{}, fault.New(Configuration, "MOONCITE_STATE_DIR is not an absolute path").
				WithHint("set MOONCITE_STATE_DIR to an absolute path, or unset it")
		}
		p.StateDir = filepath.Clean(v)
	}
	p.fixed = []Registration{
		{evidence.Pi, filepath.Join(dir("PI_AGENT_DIR", ".pi/agent"), "sessions")},
		{evidence.OMP, filepath.Join(dir("PI_CODING_AGENT_DIR", ".omp/agent"), "sessions")},
	}
	codex := dir("CODEX_HOME", ".codex")
	auto := []Registration{
		{evidence.Claude, filepath.Join(home, ".claude/projects")},
		{evidence.Claude, filepath.Join(home, ".config/claude-sol/projects")},
		{evidence.Codex, filepath.Join(codex, "sessions")},
		{evidence.Codex, filepath.Join(codex, "archived_sessions")},
		{evidence.ChatGPT, filepath.Join(home, "incoming/chatgpt-share-archive")},
	}
	if env["CLAUDE_CONFIG_DIR"] != "" {
		auto = append(auto[:1:1], append([]Registration{{evidence.Claude, filepath.Join(dir("CLAUDE_CONFIG_DIR", ""), "projects")}}, auto[1:]...)...)
	}
	// The default Codex directories are known even when CODEX_HOME leads elsewhere:
	// setting a variable must not change citations of a root registered by hand.
	for _, name := range []string{"sessions", "archived_sessions"} {
		p.known[filepath.Join(home, ".codex", name)] = true
	}
	for _, a := range auto {
		p.known[a.Dir] = true
	}
	if env["MOONCITE_AUTO_SOURCES"] != "0" {
		p.automatic = auto
	}
	return p, nil
}

// Housed refuses a directory that is to be made below a home that does not exist: a HOME
// that was mistyped would come into being.
func (p Places) Housed(dir string) error {
	if _, err := os.Stat(p.home); errors.Is(err, fs.ErrNotExist) && within(dir, p.home) {
		return fault.Wrap(Configuration, &privdir.At{Path: p.home, Err: err}, "the home directory does not exist").
			WithHint("set HOME to your home directory, or make the directory it names")
	}
	return nil
}

// countsAsAutomatic says how a root stands in its digest (decision 2.7): by its path
// alone, so that registering it by hand or switching automatic roots off changes no
// citation.
func (p Places) countsAsAutomatic(r Registration) bool {
	return r.Origin != evidence.Pi && r.Origin != evidence.OMP && p.known[r.Dir]
}
