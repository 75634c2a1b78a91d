package ignore

import (
	"bytes"
	"math/bits"
	"strings"
)

// Rules are the rules of one file, in its order. Nil and zero have none.
type Rules struct {
	base  string // directory of the file and a slash; empty for the root
	fold  bool
	list  []rule
	index []index // of 64 rules each
}

type rule struct {
	negated bool // what it matches is not ignored
	dirOnly bool
	names   bool // about the last component, wherever it is
	form    form
	text    string  // of exact and ending: what is compared; of tokens: what a path starts with
	tokens  []token // of tokens: the rest
	tail    string  // of tokens: what a path that matches ends with
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
			if len(r.list)%64 == 0 {
				r.index = append(r.index, index{})
			}
			r.index[len(r.index)-1].add(&u, 1<<(len(r.list)%64))
			r.list = append(r.list, u)
		}
	}
	return r
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
		// Most paths are told apart by how they begin or end, without a walk over tokens.
		if plain == 0 && list[0].kind == literal {
			u.text, u.tokens = list[0].lit, list[1:]
		}
		if n := len(u.tokens); n > 0 && u.tokens[n-1].kind == literal {
			u.tail = u.tokens[n-1].lit
		}
	}
	if fold {
		u.text = lowerAll(u.text)
	}
	return u, true
}

// Match applies the rules to one path, not to the directories above it: nothing takes a file out
// of an ignored directory, which is for the caller to see to. decided tells that a rule matched; the last one that does says
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
	if name == "" {
		return false, false // nothing is called so
	}
	for i := len(r.index) - 1; i >= 0; i-- {
		for left := r.index[i].candidates(rel, name); left != 0; {
			at := bits.Len64(left) - 1
			left &^= 1 << at
			u := &r.list[64*i+at]
			if u.dirOnly && !isDir {
				continue
			}
			s := rel
			if u.names {
				s = name
			}
			if u.match(s) {
				return !u.negated, true
			}
		}
	}
	return false, false
}

func (u *rule) match(s string) bool {
	switch u.form {
	case exact:
		return s == u.text
	case ending:
		return strings.HasSuffix(s, u.text)
	}
	rest, ok := strings.CutPrefix(s, u.text)
	return ok && strings.HasSuffix(rest, u.tail) && match(u.tokens, rest)
}
