package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

const (
	registryName    = "sources.json"
	registryVersion = 1
	// MaxRegistry bounds sources.json, in bytes.
	MaxRegistry = 1 << 20
	configWhat  = "mooncite's configuration directory"
)

// The file as it is written. Pointers tell a missing key from an empty value.
type registryFile struct {
	Version *int             `json:"version"`
	Sources *[]registryEntry `json:"sources"`
}

type registryEntry struct {
	Origin *string `json:"origin"`
	Root   *string `json:"root"`
}

// Registered reads sources.json, sorted by origin and root. A missing file gives
// none. A bad one gives a fault that says which part is wrong.
func (p Places) Registered() ([]Registration, error) {
	dir, err := privdir.OpenConfig(p.ConfigDir, configWhat)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, asConfiguration(err)
	}
	defer dir.Close()
	data, err := privdir.ReadConfig(dir, registryName, registryName, MaxRegistry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, asConfiguration(err)
	}
	return parseRegistry(data)
}

// RegistryPath is where sources.json is, or will be.
func (p Places) RegistryPath() string { return filepath.Join(p.ConfigDir, registryName) }

// Register adds a root to sources.json. It must be an existing directory, reached
// without a link, that does not overlap the state directory. Adding what is there
// already changes nothing.
func (p Places) Register(ctx context.Context, r Registration) error {
	if why := badRegistration(string(r.Origin), r.Dir); why != "" {
		return fault.New(Configuration, "the source cannot be added: %s", why).WithHint("give one of %s and the directory's absolute path", originNames())
	}
	if state, problem, _ := p.judge(r, deepest(p.StateDir)); problem != nil {
		return problem
	} else if state == Missing {
		return fault.New(Configuration, "the source cannot be added: the directory does not exist").WithHint("look at the path's spelling")
	}
	return p.change(ctx, func(list []Registration) []Registration {
		if slices.Contains(list, r) {
			return list
		}
		return append(list, r)
	})
}

// Unregister takes a root out of sources.json and reports whether it was there.
func (p Places) Unregister(ctx context.Context, r Registration) (found bool, err error) {
	err = p.change(ctx, func(list []Registration) []Registration {
		i := slices.Index(list, r)
		if found = i >= 0; found {
			list = slices.Delete(list, i, i+1)
		}
		return list
	})
	return found && err == nil, err
}

// change rewrites sources.json under a lock, so that two commands at once both count.
func (p Places) change(ctx context.Context, edit func([]Registration) []Registration) error {
	if err := os.MkdirAll(p.ConfigDir, 0o700); err != nil {
		return fault.Wrap(Configuration, err, "%s cannot be made", configWhat).WithHint("look at the permissions of the directory above it")
	}
	dir, err := privdir.OpenConfig(p.ConfigDir, configWhat)
	if err != nil {
		return asConfiguration(err)
	}
	defer dir.Close()
	lock, err := privdir.Lock(ctx, filepath.Join(dir.Path(), "."+registryName+".lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	old, err := p.Registered()
	if err != nil {
		return err
	}
	list := edit(slices.Clone(old))
	if slices.Equal(list, old) {
		return nil
	}
	if err := dir.WriteFileAtomic(registryName, encodeRegistry(list), 0o600); err != nil {
		return fault.Wrap(Configuration, err, "%s cannot be written", registryName).WithHint("look at the space and the permissions of mooncite's configuration directory")
	}
	return nil
}

func parseRegistry(data []byte) ([]Registration, error) {
	bad := func(cause error, format string, args ...any) error {
		return fault.Wrap(Configuration, cause, "%s is not valid: %s", registryName, fmt.Sprintf(format, args...)).
			WithHint("correct it by hand, or move it away and add the sources again with mooncite source add")
	}
	var f registryFile
	if err := json.Unmarshal(data, &f, json.RejectUnknownMembers(true)); err != nil {
		var syntax *jsontext.SyntacticError
		var meaning *json.SemanticError
		switch {
		case errors.As(err, &syntax):
			return nil, bad(err, "it is no JSON at line %d", 1+bytes.Count(data[:min(int(syntax.ByteOffset), len(data))], []byte("\n")))
		case errors.As(err, &meaning) && meaning.JSONPointer != "":
			return nil, bad(err, "%s has an unknown name or a value of the wrong kind", evidence.Visible(string(meaning.JSONPointer)))
		}
		return nil, bad(err, "it is not an object with version and sources")
	}
	switch {
	case f.Version == nil:
		return nil, bad(nil, "version is missing")
	case *f.Version != registryVersion:
		return nil, bad(nil, "version is %d, and this program knows %d", *f.Version, registryVersion)
	case f.Sources == nil:
		return nil, bad(nil, "sources is missing")
	}
	list := make([]Registration, 0, len(*f.Sources))
	seen := map[Registration]int{}
	for i, e := range *f.Sources {
		switch {
		case e.Origin == nil:
			return nil, bad(nil, "sources[%d].origin is missing", i)
		case e.Root == nil:
			return nil, bad(nil, "sources[%d].root is missing", i)
		}
		if why := badRegistration(*e.Origin, *e.Root); why != "" {
			return nil, bad(nil, "sources[%d]: %s", i, why)
		}
		r := Registration{evidence.Origin(*e.Origin), *e.Root}
		if first, twice := seen[r]; twice {
			return nil, bad(nil, "sources[%d] repeats sources[%d]", i, first)
		}
		seen[r] = i
		list = append(list, r)
	}
	sortRegistrations(list)
	return list, nil
}

// badRegistration says in a few words what is wrong, or "".
func badRegistration(origin, root string) string {
	switch {
	case !slices.Contains(registrable, evidence.Origin(origin)):
		return "origin is not one of " + originNames()
	case !filepath.IsAbs(root):
		return "root is not an absolute path"
	case filepath.Clean(root) != root:
		return "root is not in its shortest form"
	case !utf8.ValidString(root) || strings.ContainsRune(root, 0):
		return "root is not valid text"
	}
	return ""
}

var registrable = []evidence.Origin{evidence.Claude, evidence.Codex, evidence.ChatGPT}

func originNames() string { return "claude-code, codex, chatgpt" }

func encodeRegistry(list []Registration) []byte {
	sortRegistrations(list)
	version, entries := registryVersion, make([]registryEntry, len(list))
	for i := range list {
		origin := string(list[i].Origin)
		entries[i] = registryEntry{&origin, &list[i].Dir}
	}
	data, err := json.Marshal(registryFile{&version, &entries}, jsontext.WithIndent("  "))
	if err != nil {
		panic(err) // strings and a number; roots are valid UTF-8
	}
	return append(data, '\n')
}

func sortRegistrations(list []Registration) {
	slices.SortFunc(list, func(a, b Registration) int {
		return cmp.Or(cmp.Compare(a.Origin, b.Origin), cmp.Compare(a.Dir, b.Dir))
	})
}

// asConfiguration gives a fault of the foundation this package's reason.
func asConfiguration(err error) error {
	f := fault.From(err)
	if f.Code == safefile.NotSupported {
		return err
	}
	return fault.Wrap(Configuration, err, "%s", f.Msg).WithHint("%s", f.Hint)
}
