package workspace

import (
	"strings"

	"localmcp/dodo/internal/ground/ignore"
	"localmcp/internal/safefile"
)

// The bounds of ignore files (spec dodo-behaviour 4.2). A larger one is left out.
const (
	maxIgnoreFiles = 200
	maxIgnoreBytes = 256 << 10
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

// excludeRules are patterns that can only leave out.
func excludeRules(patterns []string) *ignore.Rules {
	var b strings.Builder
	for _, pattern := range patterns {
		if CheckPattern(pattern) == nil {
			b.WriteString(literalStart(pattern) + "\n")
		}
	}
	return ignore.Parse([]byte(b.String()), "")
}

// ordinary is the ordinary layer as one listing or one walk sees it. One goroutine at a time
// reads ignore files.
type ordinary struct {
	exclude *ignore.Rules // the owner's and the workspace's configuration
	own     *ignore.Rules // .dodoignore in the root
	left    int           // how many .gitignore may still be read
}

// level is what the ignore files say in one directory: its own, and those above it.
type level struct {
	above *level
	rules *ignore.Rules
}

// levels reads what holds in a directory, without its own .gitignore.
func (t *Tree) levels(p Path) (*ordinary, *level, error) {
	o := &ordinary{exclude: t.exclude, left: 1 + maxIgnoreFiles}
	var l *level
	dir, err := t.root.OpenDir(".")
	if err != nil {
		return nil, nil, t.lookup(p, err)
	}
	defer func() { dir.Close() }()
	o.own = readRules(dir, ".dodoignore", Path{})
	at := Path{}
	for name := range strings.SplitSeq(p.rel, "/") {
		if name == "" {
			break // p is the root
		}
		l = o.add(l, dir, at)
		next, err := dir.Sub(name)
		if err != nil {
			return nil, nil, t.lookup(p, err)
		}
		dir.Close()
		dir, at = next, at.Join(name)
	}
	return o, l, nil
}

// enter adds the rules of a directory whose entries are all.
func (o *ordinary) enter(above *level, dir *safefile.Dir, p Path, all []safefile.Entry) *level {
	for _, e := range all {
		if e.Name == gitignore && e.Type == safefile.Regular {
			return o.add(above, dir, p)
		}
	}
	return above
}

const gitignore = ".gitignore"

func (o *ordinary) add(above *level, dir *safefile.Dir, p Path) *level {
	if o.left == 0 {
		return above
	}
	rules := readRules(dir, gitignore, p)
	if rules == nil {
		return above
	}
	o.left--
	return &level{above, rules}
}

// readRules reads an ignore file, which as for git is no link. One that cannot be read has
// no rules: the layer hides what is of no interest, and protects nothing.
func readRules(dir *safefile.Dir, name string, p Path) *ignore.Rules {
	data, _, more, err := dir.Load(name, nil, maxIgnoreBytes)
	if err != nil || more {
		return nil
	}
	return ignore.Parse(data, p.rel)
}

// leavesOut judges an entry whose directory is not left out.
func (o *ordinary) leavesOut(l *level, p Path, name string, dir bool) bool {
	if ignored, _ := o.exclude.Match(p.rel, dir); ignored {
		return true
	}
	if ignored, decided := o.own.Match(p.rel, dir); decided {
		return ignored
	}
	for ; l != nil; l = l.above {
		if ignored, decided := l.rules.Match(p.rel, dir); decided {
			return ignored
		}
	}
	return usual(name, dir)
}
