package source

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"localmcp/internal/fault"
	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
)

// State says whether a root can be read.
type State uint8

// The states.
const (
	Usable  State = iota
	Missing       // no such directory: nothing to read yet
	Refused       // see Problem
	Covered       // a link to a directory that is a root of the same origin by itself
)

// A Root is an authorized directory.
type Root struct {
	Registration
	Digest     string // evidence.RootDigest
	Automatic  bool   // as the digest counts it
	Registered bool   // from sources.json
	State      State
	// Problem says why a Refused root is not read; its code is [Configuration] or
	// [RootUnavailable].
	Problem *fault.Error
	// Remedy is a command or a step with real paths in it: for the owner's terminal
	// only, never for an answer over MCP. It may be "".
	Remedy string
}

// Set is what is authorized at one moment.
type Set struct {
	Roots []Root // Pi, OMP, registered, automatic
	// Problem is what is wrong with sources.json, or nil. The other roots work.
	Problem *fault.Error
}

// Resolve looks at the roots as they are now.
func (p Places) Resolve() Set {
	var s Set
	registered, err := p.Registered()
	if err != nil {
		s.Problem = fault.From(err)
	}
	state := deepest(p.StateDir)
	add := func(list []Registration, byHand bool) {
		for _, r := range list {
			if slices.ContainsFunc(s.Roots, func(o Root) bool { return o.Registration == r }) {
				continue // registered and automatic, or two variables that lead to one place
			}
			auto := p.countsAsAutomatic(r)
			root := Root{Registration: r, Digest: evidence.RootDigest(r.Dir, auto), Automatic: auto, Registered: byHand}
			root.State, root.Problem, root.Remedy = p.judge(r, state)
			s.Roots = append(s.Roots, root)
		}
	}
	add(p.fixed, false)
	add(registered, true)
	add(p.automatic, false)
	for i := range s.Roots {
		s.cover(&s.Roots[i])
	}
	return s
}

// Inside reports whether a directory, which need not exist, lies inside a root, and whose:
// then nothing may be made there.
func (p Places) Inside(dir string) (evidence.Origin, bool) {
	registered, _ := p.Registered() // what is wrong with it is said elsewhere
	real := deepest(dir)
	for _, list := range [][]Registration{p.fixed, registered, p.automatic} {
		for _, r := range list {
			if within(dir, r.Dir) || within(real, r.Dir) {
				return r.Origin, true
			}
		}
	}
	return "", false
}

// cover takes the complaint about a link back when the owner has already followed
// its remedy.
func (s Set) cover(r *Root) {
	if r.State != Refused || r.Problem.Code != RootUnavailable {
		return
	}
	end, err := filepath.EvalSymlinks(r.Dir)
	if err != nil || end == r.Dir {
		return
	}
	if slices.ContainsFunc(s.Roots, func(o Root) bool { return o.State == Usable && o.Registration == Registration{r.Origin, end} }) {
		r.State, r.Problem, r.Remedy = Covered, nil, ""
	}
}

// judge looks at one root. state is where the state directory really is.
func (p Places) judge(r Registration, state string) (State, *fault.Error, string) {
	if !filepath.IsAbs(r.Dir) {
		return Refused, fault.New(Configuration, "the directory set for %s is not an absolute path", r.Origin).
			WithHint("set %s to an absolute path, or unset it", variables[r.Origin]), ""
	}
	dir, err := safefile.OpenRoot(r.Dir, safefile.RefuseLinks)
	real := r.Dir // no link in it
	switch {
	case err == nil:
		dir.Close()
	case !errors.Is(err, fs.ErrNotExist): // up to what is missing there is no link either
		real = deepest(r.Dir)
	}
	if overlap(r.Dir, p.StateDir) || overlap(real, state) {
		return Refused, fault.New(Configuration, "a %s root overlaps mooncite's own state directory", r.Origin).
			WithHint("set MOONCITE_STATE_DIR to a directory outside every root"), ""
	}
	var link *safefile.LinkError
	switch {
	case err == nil:
		return Usable, nil, ""
	case errors.As(err, &link):
		end, err := filepath.EvalSymlinks(r.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return Missing, nil, ""
		}
		problem := fault.Wrap(RootUnavailable, link, "the path of a %s root has a symbolic link, which is not followed", r.Origin)
		if err != nil {
			return Refused, problem.WithHint("look where the link leads"), ""
		}
		return Refused, problem.WithHint("%s", linkHint(r.Origin)), linkRemedy(r.Origin, end)
	case errors.Is(err, fs.ErrNotExist):
		return Missing, nil, ""
	case errors.Is(err, safefile.NotSupported):
		return Refused, fault.From(err), ""
	}
	problem, remedy := unreadable(r, err)
	return Refused, problem, remedy
}

// unreadable says why a root cannot be opened or listed.
func unreadable(r Registration, err error) (*fault.Error, string) {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap(RootUnavailable, err, "a %s root cannot be read: permission denied", r.Origin).
			WithHint("give yourself permission to read it"), "chmod u+rx " + quote(r.Dir)
	case errors.Is(err, safefile.ErrNotDirectory):
		return fault.Wrap(RootUnavailable, err, "a %s root is not a directory", r.Origin).
			WithHint("put a directory in its place"), ""
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fault.Wrap(RootUnavailable, err, "the path of a %s root is too long", r.Origin).WithHint("give another directory"), ""
	}
	return fault.Wrap(RootUnavailable, err, "a %s root cannot be opened", r.Origin).
		WithHint("look at the disk it is on"), ""
}

// variables move the roots of an origin.
var variables = map[evidence.Origin]string{
	evidence.Pi: "PI_AGENT_DIR", evidence.OMP: "PI_CODING_AGENT_DIR", evidence.Claude: "CLAUDE_CONFIG_DIR", evidence.Codex: "CODEX_HOME",
}

// linkHint and linkRemedy say how to reach the real directory: sources.json takes
// three origins, the other two have a variable.
func linkHint(o evidence.Origin) string {
	if o == evidence.Pi || o == evidence.OMP {
		return "set " + variables[o] + " to the real path of the directory above it"
	}
	return "add its real path with mooncite source add " + string(o) + " PATH"
}

func linkRemedy(o evidence.Origin, end string) string {
	if o == evidence.Pi || o == evidence.OMP {
		return "export " + variables[o] + "=" + quote(filepath.Dir(end))
	}
	return "mooncite source add " + string(o) + " " + quote(end)
}

// quote makes a path one word of a shell.
func quote(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%=", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// overlap reports whether one directory is the other or inside it, as the paths are
// written.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

// deepest resolves the links in as much of a path as exists.
func deepest(path string) string {
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if end, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(end, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}
