package ignore

import "strings"

// A token is one step of a compiled pattern.
type token struct {
	kind kind
	lit  string     // of literal
	set  *[8]uint32 // of class: the bytes it takes, by bit
}

type kind uint8

const (
	literal kind = iota
	single       // ?: one byte, not a slash
	class        // [...]: one byte of a set, never a slash
	star         // *: bytes up to the next slash
	deep         // ** at the end, or before an escaped slash: any bytes
	deepDir      // **/: nothing, or any bytes and a slash
)

// broken says why a pattern can never match, and where.
type broken struct {
	at  int
	why string
}

// compile turns a pattern into tokens. git takes ** as special only where it stands
// between slashes or at an end of the pattern; elsewhere it is a star.
func compile(pattern string, fold bool) ([]token, *broken) {
	var list []token
	var lit []byte
	flush := func() {
		if len(lit) > 0 {
			list = append(list, token{kind: literal, lit: string(lit)})
			lit = nil
		}
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '\\':
			if i+1 == len(pattern) {
				return nil, &broken{i, "a backslash ends it"}
			}
			i++
			lit = append(lit, lower(pattern[i], fold))
		case '?':
			flush()
			list = append(list, token{kind: single})
		case '[':
			flush()
			set, next, bad := compileClass(pattern, i, fold)
			if bad != nil {
				return nil, bad
			}
			list = append(list, token{kind: class, set: set})
			i = next
		case '*':
			flush()
			first := i
			for i+1 < len(pattern) && pattern[i+1] == '*' {
				i++
			}
			rest := pattern[i+1:]
			special := i > first && (first == 0 || pattern[first-1] == '/')
			switch {
			case special && strings.HasPrefix(rest, "/"):
				list = append(list, token{kind: deepDir})
				i++
			case special && (rest == "" || strings.HasPrefix(rest, `\/`)):
				list = append(list, token{kind: deep})
			default:
				list = append(list, token{kind: star})
			}
		default:
			lit = append(lit, lower(c, fold))
		}
	}
	flush()
	return list, nil
}

// match reports whether the tokens take all of s. Only the last star and the last ** are
// tried again with more bytes: what an earlier one could take instead leads to places the
// later one reaches as well.
func match(list []token, s string) bool {
	t, at := 0, 0
	starT, starAt := -1, 0
	deepT, deepAt := -1, 0
	for {
		if t == len(list) {
			if at == len(s) {
				return true
			}
		} else {
			took := -1
			switch k := &list[t]; k.kind {
			case literal:
				if strings.HasPrefix(s[at:], k.lit) {
					took = len(k.lit)
				}
			case single:
				if at < len(s) && s[at] != '/' {
					took = 1
				}
			case class:
				if at < len(s) && k.set[s[at]>>5]&(1<<(s[at]&31)) != 0 {
					took = 1
				}
			case star:
				starT, starAt, took = t, at, 0
			default:
				deepT, deepAt, starT, took = t, at, -1, 0
			}
			if took >= 0 {
				t, at = t+1, at+took
				continue
			}
		}
		switch {
		case starT >= 0 && starAt < len(s) && s[starAt] != '/':
			starAt++
			t, at = starT+1, starAt
		case deepT >= 0 && list[deepT].kind == deep && deepAt < len(s):
			deepAt++
			t, at, starT = deepT+1, deepAt, -1
		case deepT >= 0 && list[deepT].kind == deepDir:
			i := strings.IndexByte(s[deepAt:], '/')
			if i < 0 {
				return false
			}
			deepAt += i + 1
			t, at, starT = deepT+1, deepAt, -1
		default:
			return false
		}
	}
}

func lower(c byte, fold bool) byte {
	if fold && 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// lowerAll folds the letters of ASCII. File names are bytes: what they mean beyond ASCII
// is not known.
func lowerAll(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				b[j] = lower(b[j], true)
			}
			return string(b)
		}
	}
	return s
}
