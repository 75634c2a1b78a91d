package workspace

import (
	"strings"

	"localmcp/internal/safefile"
)

// A git directory is one by its name, and by its shape whatever its name is: bare repositories,
// and those that a pointer file names, have any. Its shape is what a command cannot take away
// from it while it is one: what git has in it for its objects and branches, or what leads to
// another's (gitrepository-layout(5)), and one more of its files.

// gitShaped reports whether the entries of a directory have the shape.
func gitShaped(all []safefile.Entry) bool {
	var stores, more int
	for _, e := range all {
		switch e.Name {
		case "objects", "refs":
			stores++
		case "commondir":
			stores += 2
		case "HEAD", "config", "hooks", "packed-refs", "gitdir":
			more++
		}
	}
	return stores >= 2 && more > 0
}

// gitNamed reports whether a directory is git's by its name.
func gitNamed(p Path) bool { return strings.EqualFold(p.Base(), ".git") }

// gitStands reports whether a path is, or is in, a directory with the shape of a git directory.
// The workspace's own directory is the owner's choice.
func (t *Tree) gitStands(p Path) bool {
	for at := 0; at < len(p.rel); {
		end := len(p.rel)
		if i := strings.IndexByte(p.rel[at:], '/'); i >= 0 {
			end = at + i
		}
		if t.shaped(Path{p.rel[:end]}) {
			return true
		}
		at = end + 1
	}
	return false
}

// shaped is gitShaped for a directory by its path.
func (t *Tree) shaped(p Path) bool {
	has := func(names ...string) bool {
		for _, name := range names {
			if _, err := t.root.Peek(p.rel + "/" + name); err == nil {
				return true
			}
		}
		return false
	}
	return (has("objects") && has("refs") || has("commondir")) && has("HEAD", "config", "hooks", "packed-refs", "gitdir")
}
