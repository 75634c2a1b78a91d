package install

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
)

// The package's files, by their names in it.
const (
	programRel   = "bin/mooncite"
	manifestRel  = "manifest.json"
	extensionRel = "pi/mooncite.ts"
)

//go:embed package/pi/mooncite.ts
var piExtension []byte

//go:embed package/skills/mooncite/SKILL.md
var skill []byte

// PluginName is the name that OMP knows the package by.
const PluginName = "mooncite"

// contents are the files of a package, without its manifest.
func contents(version string, program []byte) map[string][]byte {
	return map[string][]byte{
		programRel:                 program,
		extensionRel:               piExtension,
		"skills/mooncite/SKILL.md": skill,
		"package.json":             pluginManifest(version),
		".mcp.json":                serverEntry(),
	}
}

// pluginManifest is for Pi, which takes its extension and skills from "pi", and for OMP,
// which takes "omp" when there is one: it finds the skills by itself, and the server in
// .mcp.json, so that Pi's extension must not be loaded too.
func pluginManifest(version string) []byte {
	return indented(map[string]any{
		"name": PluginName, "version": version, "private": true, "type": "module",
		"description": "Find and verify what was said in past AI conversations on this machine",
		"keywords":    []string{"pi-package"},
		"pi":          map[string]any{"extensions": []string{"./" + extensionRel}, "skills": []string{"./skills"}},
		"omp":         map[string]any{},
	})
}

// serverEntry is .mcp.json. OMP resolves the command below the package.
func serverEntry() []byte {
	return indented(map[string]any{"mcpServers": map[string]any{
		serverName: map[string]any{"type": "stdio", "command": "./" + programRel, "args": serveArgs},
	}})
}

// The registration that every client has.
const serverName = "mooncite"

var serveArgs = []string{"serve"}

// A manifest says what a package is made of.
type manifest struct {
	Version int               `json:"version"` // of this format
	Package string            `json:"package"` // the version of mooncite
	Files   map[string]string `json:"files"`   // SHA-256 in hex, by name
}

const manifestVersion = 1

func manifestOf(version string, files map[string][]byte) manifest {
	m := manifest{Version: manifestVersion, Package: version, Files: map[string]string{}}
	for name, data := range files {
		m.Files[name] = digest(data)
	}
	return m
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// directories are those that the files are in, each after the one above it.
func (m manifest) directories() []string {
	var dirs []string
	for name := range m.Files {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			dirs = append(dirs, d)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func indented(v any) []byte {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // maps of strings
	}
	return append(data, '\n')
}
