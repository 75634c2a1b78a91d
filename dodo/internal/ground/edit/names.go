package edit

import (
	"regexp"
	"strings"
	"time"
)

const devNull = "/dev/null"

// maxName bounds the names of a line; a path has at most 1024 characters.
const maxName = 16 << 10

// stamp is the time that diff writes behind a name, after a tab or, from a model, a blank.
var stamp = regexp.MustCompile(`\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?( ?(Z|[+-]\d\d:?\d\d))?$`)

// fileName reads the name of a --- or +++ line, and whether its time is the beginning of
// time: so diff marks a file that is not there.
func fileName(s string) (name string, epoch, ok bool) {
	if len(s) > maxName {
		return "", false, false
	}
	if at := stamp.FindStringIndex(s); at != nil {
		epoch = beginning(strings.TrimSpace(s[at[0]:]))
		s = s[:at[0]]
	}
	if strings.HasPrefix(s, `"`) {
		name, _, ok = unquote(s)
		return name, epoch, ok
	}
	name, _, _ = strings.Cut(s, "\t")
	name = strings.TrimRight(name, " ")
	return name, epoch, name != ""
}

// beginning reports whether a time with its zone is the beginning of time. Without a zone it is
// nobody's mark.
func beginning(t string) bool {
	for _, form := range []string{"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05 Z"} {
		if at, err := time.Parse(form, t); err == nil { // a fraction of a second may stand there, too
			return at.UnixNano() == 0
		}
	}
	return false
}

// unquote reads a name as git quotes it, and how many bytes that took.
func unquote(s string) (name string, n int, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), i + 1, b.Len() > 0
		case '\\':
			i++
			if i == len(s) {
				return "", 0, false
			}
			if k := strings.IndexByte(`abtnvfr"\`, s[i]); k >= 0 {
				b.WriteByte("\a\b\t\n\v\f\r\"\\"[k])
				continue
			}
			if i+3 > len(s) {
				return "", 0, false
			}
			v := 0
			for _, d := range []byte(s[i : i+3]) {
				if d < '0' || d > '7' {
					return "", 0, false
				}
				v = v*8 + int(d-'0')
			}
			if v > 0xff {
				return "", 0, false
			}
			b.WriteByte(byte(v))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}

// gitName reads the name of a "diff --git" line whose two names are the same file.
func gitName(s string) (string, bool) {
	if len(s) > maxName {
		return "", false
	}
	if strings.HasPrefix(s, `"`) {
		from, n, ok := unquote(s)
		if !ok || n >= len(s) {
			return "", false
		}
		to := strings.TrimLeft(s[n:], " ")
		if strings.HasPrefix(to, `"`) {
			if to, _, ok = unquote(to); !ok {
				return "", false
			}
		}
		return common(from, to)
	}
	// Names may hold blanks: the right one leaves the same name on both sides.
	for i := range len(s) {
		if s[i] != ' ' {
			continue
		}
		// Two names of one file are as long as each other, but for a prefix.
		if d := len(s) - 1 - 2*i; d < -3 || d > 3 {
			continue
		}
		if name, same := common(s[:i], s[i+1:]); same {
			return name, true
		}
	}
	return "", false
}

// pairs are the prefixes that git writes before the names of the two sides.
var pairs = [][2]string{{"a/", "b/"}, {"i/", "w/"}, {"c/", "w/"}, {"c/", "i/"}, {"o/", "w/"}, {"w/", "i/"}, {"w/", "c/"}, {"i/", "c/"}, {"b/", "a/"}}

// common is the name that two sides have in common, without git's prefixes.
func common(from, to string) (string, bool) {
	for _, p := range pairs {
		f, ok1 := strings.CutPrefix(from, p[0])
		t, ok2 := strings.CutPrefix(to, p[1])
		if ok1 && ok2 && f == t {
			return f, true
		}
	}
	return from, from == to
}
