package ignore_test

import "localmcp/dodo/internal/ground/ignore"

// A stack is the rules that hold at a place: general ones first, then those of the root,
// then those of each directory on the way. A later member outweighs the earlier ones.
type stack []*ignore.Rules

// match applies the rules to one path, without those about the directories above it: as a
// walk asks, which does not enter an ignored directory.
func (s stack) match(path string, isDir bool) (ignored, decided bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if ignored, decided = s[i].Match(path, isDir); decided {
			return ignored, true
		}
	}
	return false, false
}

// ignored reports whether a path is ignored, itself or because a directory above it is:
// nothing takes a file out of an ignored directory.
func (s stack) ignored(path string, isDir bool) bool {
	for i := 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if ignored, _ := s.match(path[:i], true); ignored {
			return true
		}
	}
	ignored, _ := s.match(path, isDir)
	return ignored
}
