package overview

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"localmcp/dodo/internal/contract"
)

type environmentIn struct{}

type environmentOut struct {
	OS            string             `json:"os"`
	Release       string             `json:"release" doc:"Of the kernel."`
	Arch          string             `json:"arch"`
	CPUs          int                `json:"cpus"`
	Shell         *string            `json:"shell" doc:"The shell that commands run in; null where there is none."`
	ShellKind     *string            `json:"shellKind"`
	WindowsNative map[string]any     `json:"windowsNative,omitempty"`
	Tools         map[string]*string `json:"tools" doc:"What each program says of its version, or where it is when it could not be asked; null where there is none on the trusted path."`
	Capabilities  capabilities       `json:"capabilities"`
	Note          string             `json:"note"`
}

type capabilities struct {
	SearchBackend   string   `json:"searchBackend"`
	SemanticBuiltin []string `json:"semanticBuiltin"`
	LSPLanguages    []string `json:"lspLanguages"`
	CommandSandbox  string   `json:"commandSandbox" doc:"How commands are confined on this machine: full, bwrap, reduced, none, or unavailable."`
	WebFetch        bool     `json:"webFetch"`
	TrustMode       string   `json:"trustMode"`
}

// unavailable stands where commands cannot be run.
const unavailable = "unavailable"

// known are the programs looked for.
var known = []string{"node", "npm", "pnpm", "yarn", "bun", "python3", "pip3", "go", "cargo", "rustc", "java", "ruby", "git", "rg", "docker", "make"}

func (s *Service) environmentInfo() contract.Op {
	return contract.Read(contract.Def{
		Name: "environment_info", Title: "Show the machine's tools", Gateway: "dodo_read",
		Doc:   "Tells what machine this is, which development programs it has, and what dodo can do here.",
		Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true, Idempotent: true,
	}, func(ctx context.Context, _ contract.Call, _ environmentIn) (a contract.Answer[environmentOut], err error) {
		trust, _, err := s.Standing(ctx)
		if err != nil {
			return a, err
		}
		a.Data = environmentOut{
			OS: runtime.GOOS, Release: kernelRelease(), Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Tools: map[string]*string{},
			Capabilities: capabilities{SearchBackend: s.SearchBackend, CommandSandbox: unavailable, WebFetch: s.WebFetch, TrustMode: string(trust)},
			Note:         "Language servers are not in this version of dodo.",
		}
		if s.Isolation != nil {
			a.Data.Capabilities.CommandSandbox = s.Isolation(ctx)
		}
		if sh, ok := s.find("sh"); ok {
			kind := "posix"
			a.Data.Shell, a.Data.ShellKind = &sh, &kind
		}
		paths := map[string]string{}
		for _, name := range known {
			a.Data.Tools[name] = nil
			if path, ok := s.find(name); ok {
				paths[name] = path
				a.Data.Tools[name] = &path
			}
		}
		if s.Place != nil {
			for name, said := range s.versions.ask(ctx, s.Place, paths) {
				a.Data.Tools[name] = &said
			}
		}
		return a, nil
	})
}

// find looks for a program on the trusted path: absolute directories outside the
// workspace, so that nothing of the project is ever taken for a tool.
func (s *Service) find(name string) (string, bool) {
	for _, dir := range s.Path {
		if !filepath.IsAbs(dir) || within(dir, s.Tree.Root()) {
			continue
		}
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, true
		}
	}
	return "", false
}

func within(dir, root string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// kernelRelease is the kernel's own word for its version; empty where it has none.
func kernelRelease() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
