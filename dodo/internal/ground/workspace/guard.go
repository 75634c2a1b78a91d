package workspace

import (
	"path/filepath"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// guard holds the two layers of exclusion that nothing bypasses. Both go by name alone, so
// they hold for what does not exist yet.
type guard struct {
	hidden []Path // in lower case
	secret secrets
}

func newGuard(root string, o Options) (guard, error) {
	g := guard{secret: newSecrets(o.SecretDeny, o.SecretAllow)}
	for _, h := range o.Hidden {
		rel, err := filepath.Rel(root, settle(h))
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		g.hidden = append(g.hidden, Path{strings.ToLower(filepath.ToSlash(rel))})
	}
	return g, nil
}

// closed says what layer keeps an entry of a directory that is itself open to callers.
func (g *guard) closed(p Path, name string, dir bool) layer {
	if protectedName(name) || stageName(name) {
		return protected
	}
	if len(g.hidden) > 0 {
		low := Path{strings.ToLower(p.rel)}
		for _, h := range g.hidden {
			if low.Within(h) {
				return protected
			}
		}
	}
	if g.secret.match(p.rel, name, dir) {
		return secret
	}
	return open
}

type layer uint8

const (
	open layer = iota
	protected
	secret
)

// check is closed for a path from outside: every directory on the way counts, and the last
// name may become a file or a directory.
func (g *guard) check(p Path) layer {
	for i := 0; i < len(p.rel); {
		end := strings.IndexByte(p.rel[i:], '/')
		last := end < 0
		if last {
			end = len(p.rel)
		} else {
			end += i
		}
		at, name := Path{p.rel[:end]}, p.rel[i:end]
		l := g.closed(at, name, true)
		if l == open && last {
			l = g.closed(at, name, false)
		}
		if l != open {
			return l
		}
		i = end + 1
	}
	return open
}

// Access says whether callers may reach a path at all, by its name: SECRET_PATH_DENIED or
// PATH_DENIED where they may not. It is so whether the path exists or not.
func (t *Tree) Access(p Path) error {
	switch t.guard.check(p) {
	case secret:
		return fault.New(contract.SecretPathDenied, "this path is kept secret from callers").
			WithHint("do without it; the owner decides what is secret").With("path", p.String())
	case protected:
		return fault.New(contract.PathDenied, "this path is protected: file tools do not reach it").
			WithHint("use the git operations for what git keeps").With("path", p.String())
	}
	return nil
}

// protectedName reports whether a name is git's own directory or the file that points to
// one, in any form that a file system takes for it: other case, dots and spaces at the end
// and the short name (NTFS), characters that are not counted (HFS+).
func protectedName(name string) bool {
	if name == "" || name[0] != '.' && name[0]|0x20 != 'g' && name[0] < 0x80 {
		return false
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
	if i := strings.IndexByte(name, ':'); i >= 0 {
		name = name[:i] // a stream of the file
	}
	name = strings.TrimRight(name, ". ")
	if strings.EqualFold(name, ".git") {
		return true
	}
	rest, ok := cutPrefixFold(name, "git~")
	return ok && len(rest) == 1 && rest[0] >= '0' && rest[0] <= '9'
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
