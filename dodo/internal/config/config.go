package config

import (
	"errors"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/internal/fault"
)

// FileName is the file's name in the installation directory.
const FileName = "config.json"

// version is that of the file's form.
const version = 1

// DefaultPort is where the server listens.
const DefaultPort = 21730

// The two words of a switch.
const (
	On  = "on"
	Off = "off"
)

// Bounds of the lists and words.
const (
	maxHosts   = 20
	maxDeny    = 200
	maxAllow   = 50
	maxPattern = 500 // bytes of one pattern
	maxNames   = 50  // of variables
	maxPaths   = 50
	maxPath    = 4096 // bytes of one
	maxEntries = 200  // of each list of the network
)

// Config is what the owner has set. Settings that later parts of dodo bring come with them.
type Config struct {
	Version       int                 `json:"version"`
	AccessMode    contract.AccessMode `json:"accessMode"`
	ToolSurface   string              `json:"toolSurface,omitzero"` // empty: what the transport has
	SearchBackend string              `json:"searchBackend"`
	SecretDeny    []string            `json:"secretDeny"`
	SecretAllow   []string            `json:"secretAllow"`
	// CommandSandbox is a sandbox.Mode, JobNetwork a sandbox.Network.
	CommandSandbox   string   `json:"commandSandbox"`
	JobNetwork       string   `json:"jobNetwork"`
	EnvAllowlist     []string `json:"envAllowlist"`
	SandboxReadPaths []string `json:"sandboxReadPaths"`
	GitHooks         string   `json:"gitHooks"`
	AllowWebFetch    bool     `json:"allowWebFetch"`
	EgressAllow      []string `json:"egressAllow"`
	EgressDeny       []string `json:"egressDeny"`
	// PublicURL is the origin under which clients reach the server; empty: this machine's own.
	// One that cannot be used locks the server ([Config.Issuer]); the file with it is read.
	PublicURL          string   `json:"publicUrl,omitzero"`
	Port               int      `json:"port"`
	AllowedHosts       []string `json:"allowedHosts"`
	AllowedOrigins     []string `json:"allowedOrigins"`
	ClientRegistration string   `json:"clientRegistration"`
	ClientMetadata     string   `json:"clientMetadata"`
	// StartupProject is the project that a start without a root opens.
	StartupProject string          `json:"startupProject,omitzero"`
	Limits         contract.Limits `json:"limits"`
}

// Default is the configuration of a fresh installation.
func Default() Config {
	return Config{
		Version: version, AccessMode: contract.AccessPersonal, SearchBackend: "auto",
		SecretDeny: []string{}, SecretAllow: []string{},
		CommandSandbox: string(sandbox.Prefer), JobNetwork: string(sandbox.Proxy), EnvAllowlist: []string{}, SandboxReadPaths: []string{},
		GitHooks: "off", EgressAllow: []string{}, EgressDeny: []string{},
		Port: DefaultPort, AllowedHosts: []string{}, AllowedOrigins: []string{}, ClientRegistration: On, ClientMetadata: Off,
		Limits: contract.DefaultLimits(),
	}
}

// Parse reads a file. What it does not name has its default, except the access mode, which
// is managed.
func Parse(data []byte) (Config, error) {
	c := Default()
	c.Version, c.AccessMode = 0, ""
	if err := jsonv2.Unmarshal(data, &c, jsonv2.RejectUnknownMembers(true)); err != nil {
		return Config{}, broken(err)
	}
	switch {
	case c.Version > version:
		return Config{}, fault.New(contract.MigrationReviewRequired, "%s has version %d, which is newer than this program's %d", FileName, c.Version, version).
			WithHint("use the newer version of dodo")
	case c.Version != version:
		return Config{}, refused("version", "it must be %d", version)
	}
	c.AccessMode, _ = contract.ParseAccessMode(string(c.AccessMode))
	return c, c.check()
}

// check holds every setting against its bounds.
func (c *Config) check() error {
	for _, s := range Settings() {
		if err := s.check(c); err != nil {
			return err
		}
	}
	return nil
}

// encode is the file's text.
func (c Config) encode() ([]byte, error) {
	data, err := jsonv2.Marshal(c, jsontext.WithIndent("  "), jsontext.Multiline(true))
	if err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	return append(data, '\n'), nil
}

const remedy = "`dodo config list` shows every setting with its bounds"

// refused is the fault of a setting that cannot be as it is.
func refused(name, format string, args ...any) *fault.Error {
	return fault.New(contract.InvalidInput, "the setting %q cannot be used: %s", name, fmt.Sprintf(format, args...)).WithHint(remedy).With("setting", name)
}

// broken says which setting, or which place, the decoder stopped at.
func broken(err error) error {
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) {
		name := dotted(semantic.JSONPointer)
		switch {
		case errors.Is(err, jsonv2.ErrUnknownName):
			return fault.Wrap(contract.InvalidInput, err, "%s has a setting that dodo does not know: %q", FileName, name).WithHint(remedy).With("setting", name)
		case name == "":
			return fault.Wrap(contract.InvalidInput, err, "%s is not a JSON object", FileName).WithHint(remedy)
		}
		f := refused(name, "it has the wrong type")
		f.Err = err
		return f
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fault.Wrap(contract.InvalidInput, err, "%s names the setting %q twice", FileName, dotted(syntactic.JSONPointer)).WithHint(remedy)
		}
		return fault.Wrap(contract.InvalidInput, err, "%s is not valid JSON, at byte %d", FileName, syntactic.ByteOffset).WithHint(remedy)
	}
	return fault.Wrap(contract.InvalidInput, err, "%s cannot be read", FileName).WithHint(remedy)
}

// dotted is the name of a setting, limits.readFileBytes.
func dotted(p jsontext.Pointer) string {
	var parts []string
	for part := range p.Tokens() {
		parts = append(parts, part)
	}
	return strings.Join(parts, ".")
}
