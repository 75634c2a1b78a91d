package install

import (
	"path/filepath"
	"strings"
	"unicode"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/evidence"
)

// Places are where an installation is.
type Places struct {
	Root     string // the installation's own directory
	Launcher string // the command on the user's path

	home string
}

// PlacesOf reads HOME and XDG_DATA_HOME; a relative XDG_DATA_HOME is ignored, as that
// standard asks. The paths go into files of clients, so a control character in them is
// refused.
func PlacesOf(env map[string]string) (Places, error) {
	home := env["HOME"]
	if !filepath.IsAbs(home) {
		return Places{}, fault.New(evidence.CodeConfig, "HOME is not set to an absolute path").
			WithHint("set HOME to your home directory")
	}
	home = filepath.Clean(home)
	data := filepath.Join(home, ".local/share")
	if v := env["XDG_DATA_HOME"]; filepath.IsAbs(v) {
		data = filepath.Clean(v)
	}
	p := Places{Root: filepath.Join(data, "mooncite"), Launcher: filepath.Join(home, ".local/bin/mooncite"), home: home}
	if strings.ContainsFunc(p.Root+p.Launcher, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return Places{}, fault.New(evidence.CodeConfig, "HOME or XDG_DATA_HOME holds a control character or is no valid text").
			WithHint("set XDG_DATA_HOME to a directory with a plain name")
	}
	return p, nil
}

// Names in the installation's directory.
const (
	packageName = "package"
	stagePrefix = "stage-" // a package being made, or one that was replaced
	recordName  = "installation.json"
	lockName    = "install.lock"
	markerName  = ".mooncite-install"
	marker      = "mooncite-go-install-v1\n"
)

// Package is the directory of the version in force.
func (p Places) Package() string { return filepath.Join(p.Root, packageName) }

// Program is the path that clients start.
func (p Places) Program() string { return filepath.Join(p.Package(), programRel) }
