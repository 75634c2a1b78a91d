package git

import (
	"bytes"
	"strings"
)

// section is what a patch says of one file: from its header line to the next one's.
type section []byte

// headers begin a section. Every other line of a patch begins with another character, or with
// a word of the header.
var headers = [][]byte{[]byte("diff --git "), []byte("diff --cc "), []byte("diff --combined ")}

// split cuts a patch into sections. What stands before the first is no section.
func split(patch []byte) (list []section) {
	start := -1
	for at := 0; at < len(patch); {
		end := len(patch)
		if n := bytes.IndexByte(patch[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		for _, h := range headers {
			if bytes.HasPrefix(patch[at:], h) {
				if start >= 0 {
					list = append(list, section(patch[start:at]))
				}
				start = at
				break
			}
		}
		at = end
	}
	if start >= 0 {
		list = append(list, section(patch[start:]))
	}
	return list
}

// names are the paths that a section is about; not ok when they cannot be told.
func (s section) names() (list []string, ok bool) {
	line, rest, _ := strings.Cut(string(s), "\n")
	if name, is := cutAny(line, "diff --cc ", "diff --combined "); is {
		name, ok = unquote(name)
		return []string{name}, ok
	}
	line = strings.TrimPrefix(line, "diff --git ")
	for head := range strings.Lines(rest) {
		head = strings.TrimSuffix(head, "\n")
		if strings.HasPrefix(head, "@@") || strings.HasPrefix(head, "Binary files ") {
			break
		}
		if name, is := cutAny(head, "rename from ", "rename to ", "copy from ", "copy to "); is {
			if name, ok = unquote(name); !ok {
				return nil, false
			}
			list = append(list, name)
		}
	}
	if len(list) > 0 {
		return list, len(list) == 2
	}
	// Both names are the same then, so the line says where the one ends.
	if len(line)%2 == 0 || len(line) < 7 || line[len(line)/2] != ' ' {
		return nil, false
	}
	a, ok1 := unquote(line[:len(line)/2])
	b, ok2 := unquote(line[len(line)/2+1:])
	a, is1 := strings.CutPrefix(a, "a/")
	b, is2 := strings.CutPrefix(b, "b/")
	return []string{a}, ok1 && ok2 && is1 && is2 && a == b && a != ""
}

// combined reports whether a section is that of a conflict, with all its sides.
func (s section) combined() bool { return !bytes.HasPrefix(s, headers[0]) }

// conflictMarks stand before a path in the header of a conflict's section.
var conflictMarks = []string{"diff --cc ", `diff --cc "`, "diff --combined ", `diff --combined "`, "--- a/", `--- "a/`, "+++ b/", `+++ "b/`}

// below takes a directory away from the paths in the header of a conflict's section.
func (s section) below(dir string) section {
	var b strings.Builder
	head := true
	for line := range strings.Lines(string(s)) {
		head = head && !strings.HasPrefix(line, "@@")
		for _, mark := range conflictMarks {
			if rest, is := strings.CutPrefix(line, mark+dir); head && is {
				line = mark + rest
				break
			}
		}
		b.WriteString(line)
	}
	return section(b.String())
}

func cutAny(line string, prefixes ...string) (string, bool) {
	for _, p := range prefixes {
		if rest, is := strings.CutPrefix(line, p); is {
			return rest, true
		}
	}
	return "", false
}

// unquote reads a path as git writes it: in C's form between quotes when it has a character
// that is not plain.
func unquote(s string) (string, bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, s != ""
	}
	if len(s) < 3 || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			return "", false
		}
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		if at := strings.IndexByte(`abtnvfr"\`, s[i]); at >= 0 {
			b.WriteByte("\a\b\t\n\v\f\r\"\\"[at])
			continue
		}
		if i+2 >= len(s) || s[i] > '3' || !octal(s[i]) || !octal(s[i+1]) || !octal(s[i+2]) {
			return "", false
		}
		b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
		i += 2
	}
	return b.String(), true
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// quote writes a path for git to read from a list of lines.
func quote(s string) string {
	if !strings.HasPrefix(s, `"`) && !strings.ContainsAny(s, "\n\r") { // of a line, git takes a CR at its end away
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
