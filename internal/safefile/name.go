package safefile

import "strings"

// plain reports whether rel is a relative name made of ordinary components, or ".".
func plain(rel string) bool {
	if rel == "." {
		return true
	}
	start := 0
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			if rel[i] == 0 {
				return false
			}
			continue
		}
		switch rel[start:i] {
		case "", ".", "..":
			return false
		}
		start = i + 1
	}
	return true
}

// split cuts rel into the directory ("" when there is none) and the last component.
func split(rel string) (dir, base string) {
	i := strings.LastIndexByte(rel, '/')
	if i < 0 {
		return "", rel
	}
	return rel[:i], rel[i+1:]
}
