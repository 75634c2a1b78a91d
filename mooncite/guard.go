package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localmcp/internal/confine"
	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/source"
)

// A guard is the confinement of this process, which is about to read histories.
type guard struct {
	places source.Places
	roots  []string // what is authorized, there or not
	state  confine.State
	seen   []os.FileInfo // by the last look
}

// readable is what a process needs besides histories and state.
var readable = []string{"/proc/self", "/dev/null", "/dev/urandom", "/etc/localtime", "/usr/share/zoneinfo"}

// guard takes away from this process, for good, what it does not need to read the roots as
// they are now, and tries whether it is gone. With state it may also write there. No
// history was opened before, and none is where a strict program refuses the kernel.
func (p *program) guard(places source.Places, state bool, keep ...int) (*guard, error) {
	g := &guard{places: places}
	if unconfined {
		return g, p.enough(g)
	}
	policy := confine.Policy{System: append([]string{places.ConfigDir}, readable...)}
	for _, r := range places.Resolve().Roots {
		g.roots = append(g.roots, r.Dir)
		if r.State == source.Usable {
			policy.Read = append(policy.Read, r.Dir)
		}
	}
	if state {
		policy.Write = []string{places.StateDir}
	}
	var err error
	if g.state, err = confine.Self(policy, keep...); err != nil {
		return nil, err
	}
	if err := confine.Verify(g.state, g.trial(p.env["HOME"])); err != nil {
		return nil, err
	}
	return g, p.enough(g)
}

// enough refuses what a strict program does not work with.
func (p *program) enough(g *guard) error {
	if !p.strict || g.state.Level == confine.Full {
		return nil
	}
	return fault.New(confine.Refused, "this kernel can confine the program only in part (%s, Landlock ABI %d), and --strict was given", g.state.Level, g.state.LandlockABI).
		WithHint("use Linux 6.12 or later with Landlock switched on, or leave --strict away")
}

// trial is what must be out of reach: what everybody has, and what is in no root.
func (g *guard) trial(home string) confine.Trial {
	t := confine.Trial{}
	reach := []string{g.places.StateDir}
	for dir := range g.state.Held {
		reach = append(reach, end(dir))
	}
	for _, path := range []string{"/", "/etc/passwd", home} {
		if to := end(path); !slices.ContainsFunc(reach, func(dir string) bool { return below(to, dir) }) {
			t.Outside = append(t.Outside, path)
		}
	}
	for _, path := range g.roots {
		if _, held := g.state.Held[path]; held {
			t.Sources = append(t.Sources, path)
		}
	}
	return t
}

// end is where a path leads.
func end(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// below reports whether a path is dir or lies below it.
func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// stale reports whether the roots are others than those the process may read: one came,
// went, or is another directory now. A root that is only gone for a while changes nothing.
// It is asked at every request, so it looks closely only where something moved.
func (g *guard) stale() bool {
	if unconfined {
		return false
	}
	now := g.look()
	if slices.EqualFunc(now, g.seen, unmoved) {
		return false
	}
	if g.outgrown() {
		return true
	}
	g.seen = now
	return false
}

// look takes what tells of a change, at a call for each: what the roots' names lead to, the
// configuration directory and, last, sources.json. What is not there is nil.
func (g *guard) look() []os.FileInfo {
	seen := make([]os.FileInfo, 0, len(g.roots)+2)
	take := func(info os.FileInfo, err error) {
		if err != nil {
			info = nil
		}
		seen = append(seen, info)
	}
	for _, path := range g.roots {
		take(os.Lstat(path))
	}
	take(os.Stat(g.places.ConfigDir))
	take(os.Lstat(g.places.RegistryPath()))
	return seen
}

// unmoved reports whether two looks at a name found the same directory, or the same file in
// the same state.
func unmoved(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && (a.IsDir() || a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size())
}

// outgrown compares what the roots are now with what there are rules for.
func (g *guard) outgrown() bool {
	if g.changed(g.places.ConfigDir, true) {
		return true
	}
	authorized := map[string]bool{}
	for _, r := range g.places.Resolve().Roots {
		authorized[r.Dir] = true
		if r.State == source.Usable && g.changed(r.Dir, false) {
			return true
		}
	}
	for _, path := range g.roots {
		if !authorized[path] {
			return true
		}
	}
	return false
}

// changed reports whether a path leads to something else than what a rule stands for.
func (g *guard) changed(path string, links bool) bool {
	now, err := confine.Identify(path, links)
	if err != nil {
		return false // nothing is there that could be read
	}
	held, there := g.state.Held[path]
	return !there || now != held
}

// report is what status says.
func (g *guard) report() engine.Confinement {
	return engine.Confinement{Level: string(g.state.Level), LandlockABI: g.state.LandlockABI, Seccomp: g.state.Seccomp}
}
