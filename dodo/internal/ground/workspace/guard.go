package workspace

import (
	"path/filepath"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/fault"
)

// guard holds the two layers of exclusion that nothing bypasses. Both go by name alone, so
// they hold for what does not exist yet.
type guard struct {
	hidden []Path // in lower case
	own    []Path // the same, as they are written
	secret *ignore.Rules
}

func newGuard(root string, o Options) (guard, error) {
	rules, err := secretRules(o.SecretDeny, o.SecretAllow)
	if err != nil {
		return guard{}, err
	}
	g := guard{secret: rules}
	for _, h := range o.Hidden {
		rel, err := filepath.Rel(root, settle(h))
		if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			continue
		}
		g.own = append(g.own, Path{filepath.ToSlash(rel)})
		g.hidden = append(g.hidden, Path{strings.ToLower(filepath.ToSlash(rel))})
	}
	return g, nil
}

// layer says what keeps callers from an entry.
type layer uint8

const (
	reachable layer = iota
	protected
	secret
)

// judge is for an entry of a directory that is itself reachable. What is secret as a
// directory is secret as a file too: it may be one tomorrow.
func (g *guard) judge(p Path, name string) layer {
	if gitName(name) || stageName(name) {
		return protected
	}
	if len(g.hidden) > 0 {
		low := Path{strings.ToLower(guarded(p.rel))}
		if slices.ContainsFunc(g.hidden, low.Within) {
			return protected
		}
	}
	if is, _ := g.secret.Match(p.rel, true); is {
		return secret
	}
	if other := guarded(p.rel); other != p.rel {
		if is, _ := g.secret.Match(other, true); is {
			return secret
		}
	}
	if of := original(p.rel); of != p.rel && of != "" && of[len(of)-1] != '/' {
		if is, _ := g.secret.Match(of, true); is {
			return secret
		}
	}
	return reachable
}

// check is judge for a path from outside: every directory on the way counts.
func (g *guard) check(p Path) layer {
	for start := 0; start < len(p.rel); {
		end := len(p.rel)
		if i := strings.IndexByte(p.rel[start:], '/'); i >= 0 {
			end = start + i
		}
		if l := g.judge(Path{p.rel[:end]}, p.rel[start:end]); l != reachable {
			return l
		}
		start = end + 1
	}
	return reachable
}

// Access says whether callers may reach a path at all, by its name: SECRET_PATH_DENIED or
// PATH_DENIED where they may not. It is so whether the path exists or not.
func (t *Tree) Access(p Path) error {
	switch t.guard.check(p) {
	case secret:
		return fault.New(contract.SecretPathDenied, "this path is kept secret from callers").
			WithHint("do without it; the owner decides what is secret").With("path", p.Shown())
	case reachable:
		if !t.gitStands(p) {
			return nil
		}
		fallthrough
	case protected:
		return fault.New(contract.PathDenied, "this path is protected: file tools do not reach it").
			WithHint("do without it: what git and dodo keep for themselves is not for file tools").With("path", p.Shown())
	}
	return nil
}

// gitName reports whether a name is git's own directory, or the file or link in its place,
// in any form that a file system takes for it.
func gitName(name string) bool {
	if name[0] != '.' && name[0]|0x20 != 'g' && name[0] < 0x80 {
		return false
	}
	name = guarded(name)
	// The short name that NTFS and FAT give to .git.
	return strings.EqualFold(name, ".git") || len(name) == 5 && strings.EqualFold(name[:4], "git~") && name[4] >= '0' && name[4] <= '9'
}
