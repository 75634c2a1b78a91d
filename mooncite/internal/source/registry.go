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

// Register adds a root to sources.json and reports whether it was not there yet. It must
// be an existing directory that can be read, reached without a link, and must not overlap
// the state directory. Adding what is there already changes nothing.
func (p Places) Register(ctx context.Context, r Registration) (added bool, err error) {
	if why := r.Wrong(); why != "" {
		return false, fault.New(Configuration, "the source cannot be added: %s", why).WithHint("give one of %s and the directory's absolute path", Registrable())
	}
	if state, problem, _ := p.judge(r, deepest(p.StateDir)); problem != nil {
		return false, problem
	} else if state == Missing {
		return false, fault.New(Configuration, "the source cannot be added: the directory does not exist").WithHint("look at the path's spelling")
	}
	if err := readable(r); err != nil {
		return false, err
	}
	err = p.change(ctx, func(list []Registration) []Registration {
		if added = !slices.Contains(list, r); added {
			list = append(list, r)
		}
		return list
	})
	return added && err == nil, err
}

// readable lists a directory once, which its owner may do with one that others cannot.
func readable(r Registration) error {
	dir, err := safefile.OpenRoot(r.Dir, safefile.RefuseLinks)
	if err == nil {
		defer dir.Close()
		_, _, err = dir.ReadDir(".")
	}
	if err == nil {
		return nil
	}
	problem, _ := unreadable(r, err)
	return problem
}

// Unregister takes a root out of sources.json. One that is not there is a [Configuration]
// fault that says why it may be read all the same.
func (p Places) Unregister(ctx context.Context, r Registration) error {
	list, err := p.Registered()
	if err != nil {
		return err
	}
	if !slices.Contains(list, r) { // nothing is made to find that out
		return p.notRegistered(list, r)
	}
	found := false
	err = p.change(ctx, func(list []Registration) []Registration {
		i := slices.Index(list, r)
		if found = i >= 0; found {
			list = slices.Delete(list, i, i+1)
		}
		return list
	})
	if err == nil && !found {
		return p.notRegistered(nil, r)
	}
	return err
}

func (p Places) notRegistered(list []Registration, r Registration) error {
	f := fault.New(Configuration, "this directory is not registered for %s", r.Origin)
	if i := slices.IndexFunc(list, func(o Registration) bool { return o.Dir == r.Dir }); i >= 0 {
		return f.WithHint("it is registered for %s", list[i].Origin)
	}
	if slices.Contains(p.automatic, r) {
		return f.WithHint("it is read without that; MOONCITE_AUTO_SOURCES=0 switches such roots off")
	}
	return f.WithHint("`mooncite source list` shows what is")
}

// change rewrites sources.json under a lock, so that two commands at once both count.
func (p Places) change(ctx context.Context, edit func([]Registration) []Registration) error {
	if err := p.Housed(p.ConfigDir); err != nil {
		return err
	}
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
		r := Registration{evidence.Origin(*e.Origin), *e.Root}
		if why := r.Wrong(); why != "" {
			return nil, bad(nil, "sources[%d]: %s", i, why)
		}
		if first, twice := seen[r]; twice {
			return nil, bad(nil, "sources[%d] repeats sources[%d]", i, first)
		}
		seen[r] = i
		list = append(list, r)
	}
	sortRegistrations(list)
	return list, nil
}

// Wrong says in a few words why sources.json cannot have such an entry, whatever is on the
// disk; "" when it can.
func (r Registration) Wrong() string {
	switch {
	case !slices.Contains(registrable, r.Origin):
		return "origin is not one of " + Registrable()
	case !filepath.IsAbs(r.Dir):
		return "root is not an absolute path"
	case filepath.Clean(r.Dir) != r.Dir:
		return "root is not in its shortest form"
	case !utf8.ValidString(r.Dir) || strings.ContainsRune(r.Dir, 0):
		return "root is not valid text"
	}
	return ""
}

// registrable are the origins that sources.json takes; Pi and OMP are found by themselves.
var registrable = []evidence.Origin{evidence.Claude, evidence.Codex, evidence.ChatGPT}

// Registrable names the origins that can be registered, for a sentence.
func Registrable() string { return evidence.Names(registrable) }

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
