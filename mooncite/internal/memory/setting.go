package memory

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// The file that holds the owner's switch, in the configuration directory.
const (
	settingName    = "learned-memory.json"
	settingVersion = 1
	maxSetting     = 4096
	configWhat     = "mooncite's configuration directory"
)

// SettingPath is the switch's file.
func SettingPath(configDir string) string { return filepath.Join(configDir, settingName) }

// A Setting is the owner's switch.
type Setting struct {
	Enabled    bool
	Configured bool // it was ever set
}

// The file as it is written. Pointers tell a missing key from an empty value.
type settingFile struct {
	Version *int  `json:"version"`
	Enabled *bool `json:"enabled"`
}

// ReadSetting reads the switch from the configuration directory. A missing file is off.
// A file that cannot be used is off too, with the fault that says why.
func ReadSetting(configDir string) (Setting, error) {
	dir, err := privdir.OpenConfig(configDir, configWhat)
	if errors.Is(err, fs.ErrNotExist) {
		return Setting{}, nil
	}
	if err != nil {
		return Setting{}, asConfig(err)
	}
	defer dir.Close()
	data, err := privdir.ReadConfig(dir, settingName, settingName, maxSetting)
	if errors.Is(err, fs.ErrNotExist) {
		return Setting{}, nil
	}
	if err != nil {
		return Setting{}, asConfig(err)
	}
	return parseSetting(data)
}

// RequireOn gives nil while the switch is on, else a fault: refused, or the one of a
// switch that cannot be read. It reads one small file, so it can be asked at each call.
func RequireOn(configDir string) error {
	s, err := ReadSetting(configDir)
	if err != nil {
		return err
	}
	if !s.Enabled {
		return fault.New(evidence.CodeRefused, "learned memory is switched off").
			WithHint("what was kept is still there; the owner switches it on with `mooncite memory enable`")
	}
	return nil
}

func parseSetting(data []byte) (Setting, error) {
	var f settingFile
	err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true))
	if err != nil || f.Version == nil || *f.Version != settingVersion || f.Enabled == nil {
		return Setting{}, fault.Wrap(evidence.CodeConfig, err, "%s is not valid, so learned memory is off", settingName).
			WithHint("write it anew with `mooncite memory enable` or `mooncite memory disable`")
	}
	return Setting{Enabled: *f.Enabled, Configured: true}, nil
}

// WriteSetting sets the switch, whatever the file held. Servers that run already list
// the tools they started with, and refuse them while the switch is off ([RequireOn]).
func WriteSetting(configDir string, enabled bool) error {
	if err := os.MkdirAll(configDir, 0o700); err != nil {
		return fault.Wrap(evidence.CodeConfig, err, "%s cannot be made", configWhat).WithHint("look at the permissions of the directory above it")
	}
	dir, err := privdir.OpenConfig(configDir, configWhat)
	if err != nil {
		return asConfig(err)
	}
	defer dir.Close()
	version := settingVersion
	data, err := json.Marshal(settingFile{&version, &enabled}, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	if err := dir.WriteFileAtomic(settingName, append(data, '\n'), 0o600); err != nil {
		return fault.Wrap(evidence.CodeConfig, err, "%s cannot be written", settingName).WithHint("look at the space and the permissions of mooncite's configuration directory")
	}
	return nil
}

// asConfig gives a fault of the foundation this program's code.
func asConfig(err error) error {
	f := fault.From(err)
	if f.Code == safefile.NotSupported {
		return err
	}
	return fault.Wrap(evidence.CodeConfig, err, "%s", f.Msg).WithHint("%s", f.Hint)
}
