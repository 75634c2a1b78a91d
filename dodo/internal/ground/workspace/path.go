package workspace

import (
	"strings"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// The bounds of a path (spec dodo-behaviour 4.1).
const (
	maxPathChars    = 1024
	maxPathSegments = 64
)

// Path names an entry of a workspace, relative to its root. The zero Path is the root.
// Paths are comparable.
type Path struct{ rel string } // "" or components joined by "/"

// ParsePath reads a path as callers write it: relative, with "/" between names, at most 1024
// characters and 64 names, "." for the root. Empty and "." components are dropped; "..",
// backslashes, drives, "~" and absolute paths give PATH_DENIED.
func ParsePath(s string) (Path, error) {
	deny := func(why string) (Path, error) {
		return Path{}, fault.New(contract.PathDenied, "%s", why).
			WithHint("give a path relative to the workspace's root, with / between names; the root itself is .")
	}
	switch {
	case s == "":
		return deny("the path is empty")
	case utf8.RuneCountInString(s) > maxPathChars:
		return deny("the path is longer than 1024 characters")
	case strings.IndexByte(s, 0) >= 0:
		return deny("the path has a NUL byte")
	case strings.IndexByte(s, '\\') >= 0:
		return deny("the path has a backslash")
	case s[0] == '/':
		return deny("the path is absolute")
	}
	parts := make([]string, 0, strings.Count(s, "/")+1)
	for part := range strings.SplitSeq(s, "/") {
		switch part {
		case "", ".":
		case "..":
			return deny("the path has a .. in it")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) > maxPathSegments {
		return deny("the path has more than 64 names")
	}
	rel := strings.Join(parts, "/")
	switch { // of what is left: "./~x" is "~x"
	case strings.HasPrefix(rel, "~"):
		return deny("the path begins with ~")
	case len(rel) >= 2 && rel[1] == ':' && letter(rel[0]):
		return deny("the path begins with a drive letter")
	}
	return Path{rel}, nil
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// String is the path as callers write it.
func (p Path) String() string {
	if p.rel == "" {
		return "."
	}
	return p.rel
}

// Nameable reports whether a caller can name the entry: some names that a directory can have, no
// tool takes.
func (p Path) Nameable() bool {
	again, err := ParsePath(p.String())
	return err == nil && again == p && utf8.ValidString(p.rel)
}

// IsRoot reports whether the path is that of the workspace itself.
func (p Path) IsRoot() bool { return p.rel == "" }

// Parent is the directory the entry is in; the root's is the root.
func (p Path) Parent() Path {
	return Path{p.rel[:max(strings.LastIndexByte(p.rel, '/'), 0)]}
}

// Base is the last name; the root has none.
func (p Path) Base() string { return p.rel[strings.LastIndexByte(p.rel, '/')+1:] }

// Join is the path of the entry name in the directory p. The name is one that a directory
// has, not one that a caller wrote.
func (p Path) Join(name string) Path {
	if p.rel == "" {
		return Path{name}
	}
	return Path{p.rel + "/" + name}
}

// Within reports whether p is dir or below it.
func (p Path) Within(dir Path) bool {
	return dir.rel == "" || p.rel == dir.rel || strings.HasPrefix(p.rel, dir.rel) && p.rel[len(dir.rel)] == '/'
}
