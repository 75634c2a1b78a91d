package ignore

import (
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// alternativesMax bounds what the braces of a glob multiply to.
const alternativesMax = 256

// A Glob says which files are wanted: *, ?, classes and ** as in ignore rules, and {a,b}
// for one of several. One without a slash is about names, anywhere; one with a slash about
// the whole path, and a slash at its start changes nothing then.
type Glob struct {
	names bool
	lists [][]token
	dir   string
}

// ParseGlob reads a glob. One that is not well formed, or that could match nothing, is
// INVALID_INPUT with the place as the detail "at", in bytes from 0.
func ParseGlob(pattern string) (*Glob, error) {
	bad := func(at int, why string) error {
		return fault.New(contract.InvalidInput, "the glob is not well formed: %s (at byte %d)", why, at).
			WithHint(`write a special character as itself by a backslash before it, such as \[`).With("at", at)
	}
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, bad(strings.IndexByte(pattern, 0), "a NUL is in no path")
	}
	if strings.HasPrefix(pattern, "!") {
		return nil, bad(0, "a glob says what is wanted and cannot exclude")
	}
	s := strings.TrimPrefix(pattern, "./")
	g := &Glob{names: !strings.Contains(s, "/")}
	if !g.names {
		s = strings.TrimPrefix(s, "/")
	}
	cut := len(pattern) - len(s)
	switch {
	case s == "":
		return nil, bad(0, "it is empty")
	case strings.HasSuffix(s, "/"):
		return nil, bad(len(pattern)-1, "a slash at the end names a directory, and only files are found; add **")
	}
	for at, part := 0, ""; at <= len(s); at += len(part) + 1 {
		part, _, _ = strings.Cut(s[at:], "/")
		if part == "" || part == "." || part == ".." {
			return nil, bad(cut+at, `an empty part, "." and ".." are in no path`)
		}
	}
	all, wrong := expand(s)
	if wrong != nil {
		return nil, bad(cut+wrong.at, wrong.why)
	}
	for i, one := range all {
		list, wrong := compile(one, false)
		if wrong != nil {
			return nil, bad(cut+min(wrong.at, len(s)-1), wrong.why)
		}
		g.lists = append(g.lists, list)
		if dir := plainDir(one); i == 0 {
			g.dir = dir
		} else if dir != g.dir {
			g.dir = ""
		}
	}
	return g, nil
}

// plainDir is the directory a pattern names before its first special byte.
func plainDir(pattern string) string {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		pattern = pattern[:i]
	}
	return pattern[:max(strings.LastIndexByte(pattern, '/'), 0)]
}

// Match reports whether a file is wanted. path is relative to where the glob starts.
func (g *Glob) Match(path string) bool {
	if g.names {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	for _, list := range g.lists {
		if match(list, path) {
			return true
		}
	}
	return false
}

// Dir is a directory that every file the glob matches is below; "" when it says none.
func (g *Glob) Dir() string { return g.dir }

// expand writes out the braces of a glob.
func expand(s string) ([]string, *broken) {
	p := braces{s: s}
	all, wrong := p.sequence(0)
	return all, wrong
}

type braces struct {
	s  string
	at int
}

// sequence reads up to the end, or inside braces to the "," or "}" that ends it.
func (p *braces) sequence(depth int) ([]string, *broken) {
	all := []string{""}
	for p.at < len(p.s) {
		start := p.at
		var parts []string
		switch c := p.s[p.at]; {
		case depth > 0 && (c == ',' || c == '}'):
			return all, nil
		case c == '{':
			var wrong *broken
			if parts, wrong = p.group(depth + 1); wrong != nil {
				return nil, wrong
			}
		case c == '\\' && p.at+1 < len(p.s):
			p.at += 2
			parts = []string{p.s[start:p.at]}
		case c == '[':
			_, end, wrong := compileClass(p.s, p.at, false)
			if wrong != nil {
				return nil, wrong
			}
			p.at = end + 1
			parts = []string{p.s[start:p.at]}
		default:
			p.at++
			parts = []string{p.s[start:p.at]}
		}
		if len(all)*len(parts) > alternativesMax {
			return nil, &broken{start, "its braces make too many alternatives"}
		}
		if len(parts) == 1 {
			for i := range all {
				all[i] += parts[0]
			}
			continue
		}
		var product []string
		for _, a := range all {
			for _, b := range parts {
				product = append(product, a+b)
			}
		}
		all = product
	}
	return all, nil
}

// group reads what stands between braces.
func (p *braces) group(depth int) ([]string, *broken) {
	start := p.at
	if depth > 8 {
		return nil, &broken{start, "its braces are nested too deeply"}
	}
	var all []string
	for {
		p.at++ // the { or the ,
		one, wrong := p.sequence(depth)
		if wrong != nil {
			return nil, wrong
		}
		if p.at == len(p.s) {
			return nil, &broken{start, "a { has no }"}
		}
		if all = append(all, one...); len(all) > alternativesMax {
			return nil, &broken{start, "its braces make too many alternatives"}
		}
		if p.s[p.at] == '}' {
			p.at++
			return all, nil
		}
	}
}
