package ignore

import (
	"bytes"
	"strings"
)

// Rules are the rules of one file, in its order. Nil and zero have none.
type Rules struct {
	base string // directory of the file and a slash; empty for the root
	fold bool
	list []rule

	// What a match needs of list, by index in rising order: the rules that compare a name
	// whole, by that name, and all others.
	named map[string][]int
	other []int
}

type rule struct {
	negated bool // what it matches is not ignored
	dirOnly bool
	names   bool // about the last component, wherever it is
	form    form
	text    string  // of exact and ending: what is compared; of tokens: what a path starts with
	tokens  []token // of tokens: the rest

	first, last int // the bytes it begins and ends with, to pass it over quickly; -1 is any
}

type form uint8

const (
	exact  form = iota // the text
	ending             // whatever ends with the text
	tokens
)

// Parse reads the content of an ignore file that stands in the directory base, relative to
// the root of the workspace and separated by slashes; "" is the root.
func Parse(data []byte, base string) *Rules { return parse(data, base, false) }

// ParseFold is Parse for rules that take the letters A to Z for a to z. A class of letters takes
// both cases then, where git with core.ignoreCase takes [A] for no letter at all.
func ParseFold(data []byte, base string) *Rules { return parse(data, base, true) }

func parse(data []byte, base string, fold bool) *Rules {
	r := &Rules{fold: fold}
	if base != "" {
		r.base = base + "/"
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if i := bytes.IndexByte(line, 0); i >= 0 {
			line = line[:i] // git reads lines as strings of C
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if u, ok := parseRule(trimSpaces(string(line)), fold); ok {
			r.add(u)
		}
	}
	return r
}

func (r *Rules) add(u rule) {
	u.first, u.last = -1, -1
	if u.text != "" && u.form != ending {
		u.first = int(u.text[0])
	} else if len(u.tokens) > 0 && u.tokens[0].kind == literal {
		u.first = int(u.tokens[0].lit[0])
	}
	if u.text != "" && u.form != tokens {
		u.last = int(u.text[len(u.text)-1])
	} else if n := len(u.tokens); n > 0 && u.tokens[n-1].kind == literal {
		lit := u.tokens[n-1].lit
		u.last = int(lit[len(lit)-1])
	}
	i := len(r.list)
	r.list = append(r.list, u)
	if u.names && u.form == exact {
		if r.named == nil {
			r.named = map[string][]int{}
		}
		r.named[u.text] = append(r.named[u.text], i)
	} else {
		r.other = append(r.other, i)
	}
}

// trimSpaces takes the spaces away at the end that no backslash keeps.
func trimSpaces(s string) string {
	end := len(s)
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == ' ':
			if end == len(s) {
				end = i
			}
			continue
		case s[i] == '\\':
			i++
		}
		end = len(s)
	}
	return s[:end]
}

// parseRule reads a rule; one that nothing can match is none.
func parseRule(s string, fold bool) (rule, bool) {
	var u rule
	s, u.negated = strings.CutPrefix(s, "!")
	if s, u.dirOnly = strings.CutSuffix(s, "/"); s == "" {
		return rule{}, false
	}
	u.names = !strings.Contains(s, "/")
	if !u.names {
		s = strings.TrimPrefix(s, "/")
	}
	plain := strings.IndexAny(s, `*?[\`)
	switch {
	case plain < 0:
		u.form, u.text = exact, s
	case u.names && s[0] == '*' && !strings.ContainsAny(s[1:], `*?[\`):
		u.form, u.text = ending, s[1:]
	default:
		// git compares what stands before the first special byte and matches the rest as
		// a pattern of its own: a ** after "foo" is at the start of that.
		if u.names {
			plain = 0
		}
		list, bad := compile(s[plain:], fold)
		if bad != nil {
			return rule{}, false
		}
		u.form, u.text, u.tokens = tokens, s[:plain], list
	}
	if fold {
		u.text = lowerAll(u.text)
	}
	return u, true
}

// Match applies the rules to one path, without those about the directories above it
// ([Stack.Ignored] does both). decided tells that a rule matched; the last one that does says
// whether the path is ignored.
func (r *Rules) Match(path string, isDir bool) (ignored, decided bool) {
	if r == nil || len(r.list) == 0 || !strings.HasPrefix(path, r.base) {
		return false, false
	}
	rel := path[len(r.base):]
	if rel == "" {
		return false, false
	}
	if r.fold {
		rel = lowerAll(rel)
	}
	name := rel[strings.LastIndexByte(rel, '/')+1:]
	best := -1
	if r.named != nil {
		for _, i := range r.named[name] {
			if isDir || !r.list[i].dirOnly {
				best = i
			}
		}
	}
	for j := len(r.other) - 1; j >= 0 && r.other[j] > best; j-- {
		u := &r.list[r.other[j]]
		if u.dirOnly && !isDir {
			continue
		}
		s := rel
		if u.names {
			s = name
		}
		if u.match(s) {
			best = r.other[j]
			break
		}
	}
	if best < 0 {
		return false, false
	}
	return !r.list[best].negated, true
}

func (u *rule) match(s string) bool {
	if s == "" || u.first >= 0 && int(s[0]) != u.first || u.last >= 0 && int(s[len(s)-1]) != u.last {
		return false
	}
	switch u.form {
	case exact:
		return s == u.text
	case ending:
		return strings.HasSuffix(s, u.text)
	}
	rest, ok := strings.CutPrefix(s, u.text)
	return ok && match(u.tokens, rest)
}

// A Stack is the rules that hold at a place: general ones first, then those of the root,
// then those of each directory on the way. A later member outweighs the earlier ones.
type Stack []*Rules

// Match applies the rules to one path, without those about the directories above it: for a
// walk, which does not enter an ignored directory.
func (s Stack) Match(path string, isDir bool) (ignored, decided bool) {
	for i := len(s) - 1; i >= 0; i-- {
		if ignored, decided = s[i].Match(path, isDir); decided {
			return ignored, true
		}
	}
	return false, false
}

// Ignored reports whether a path is ignored, itself or because a directory above it is:
// nothing takes a file out of an ignored directory.
func (s Stack) Ignored(path string, isDir bool) bool {
	for i := 0; i < len(path); i++ {
		if path[i] != '/' {
			continue
		}
		if ignored, _ := s.Match(path[:i], true); ignored {
			return true
		}
	}
	ignored, _ := s.Match(path, isDir)
	return ignored
}
