package ignore

import "strings"

// compileClass reads the class whose "[" is at pattern[start]. It returns the bytes it
// takes and where its "]" is.
func compileClass(pattern string, start int, fold bool) (set *[8]uint32, end int, bad *broken) {
	unclosed := &broken{start, "a [ has no ]"}
	set = new([8]uint32)
	add := func(lo, hi byte) {
		for c := int(lo); c <= int(hi); c++ {
			set[c>>5] |= 1 << (c & 31)
		}
	}
	i := start + 1
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	// before is the lower end a "-" would have; none after a range, a class, or at the start.
	before, ranged := byte(0), false
	for first := true; ; first = false {
		if i >= len(pattern) {
			return nil, 0, unclosed
		}
		c := pattern[i]
		if c == ']' && !first {
			break
		}
		switch {
		case c == '\\':
			i++
			if i == len(pattern) {
				return nil, 0, unclosed
			}
			c = pattern[i]
			add(c, c)
			before, ranged = c, true
		case c == '-' && ranged && i+1 < len(pattern) && pattern[i+1] != ']':
			i++
			hi := pattern[i]
			if hi == '\\' {
				i++
				if i == len(pattern) {
					return nil, 0, unclosed
				}
				hi = pattern[i]
			}
			if before <= hi {
				add(before, hi)
			}
			ranged = false
		case c == '[' && i+1 < len(pattern) && pattern[i+1] == ':':
			n := strings.IndexByte(pattern[i+2:], ']')
			if n < 0 {
				return nil, 0, unclosed
			}
			if n == 0 || pattern[i+2+n-1] != ':' {
				add('[', '[')
				before, ranged = '[', true
				break
			}
			has, known := named[pattern[i+2:i+2+n-1]]
			if !known {
				return nil, 0, &broken{i, "there is no class of that name"}
			}
			for b := range 128 {
				if has(byte(b)) {
					add(byte(b), byte(b))
				}
			}
			i += 2 + n
			ranged = false
		default:
			add(c, c)
			before, ranged = c, true
		}
		i++
	}
	if fold {
		for c := byte('A'); c <= 'Z'; c++ {
			if set[c>>5]&(1<<(c&31)) != 0 {
				add(c+'a'-'A', c+'a'-'A')
			}
		}
		for c := byte('a'); c <= 'z'; c++ {
			if set[c>>5]&(1<<(c&31)) != 0 {
				add(c, c)
			}
		}
	}
	if negated {
		for w := range set {
			set[w] = ^set[w]
		}
	}
	set['/'>>5] &^= 1 << ('/' & 31)
	return set, i, nil
}

// named are the classes of bytes below 128. git's white space has no vertical tab and no
// form feed.
var named = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 127 },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 127 },
	"lower":  isLower,
	"print":  func(c byte) bool { return c >= ' ' && c < 127 },
	"punct":  func(c byte) bool { return c > ' ' && c < 127 && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' },
	"upper":  isUpper,
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' },
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isAlpha(c byte) bool { return isLower(c) || isUpper(c) }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
