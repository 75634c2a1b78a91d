package transcript

import (
	"encoding/binary"
	"math/bits"
)

// quick returns the length of the JSON value b begins with when it is sure that
// there is one, else -1. Real records are nearly all in order, and most of their
// bytes are long strings; jsontext, which is asked for everything quick is not
// sure of, reads strings with escapes several times slower. It accepts nothing that
// jsontext does not (FuzzWalk).
func quick(b []byte) int {
	const deepest = 64
	var inObject [deepest]bool
	depth := 0
	for i := 0; ; {
		// A value.
		if i = space(b, i); i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			if i = quickString(b, i+1); i < 0 {
				return -1
			}
		case c == '{' || c == '[':
			if depth == deepest {
				return -1
			}
			inObject[depth] = c == '{'
			depth++
			i = space(b, i+1)
			if i < len(b) && b[i] == c+2 { // } and ] stand two behind { and [
				depth--
				i++
				break
			}
			if c == '{' {
				if i = quickName(b, i); i < 0 {
					return -1
				}
			}
			continue
		case c == 't' && len(b)-i >= 4 && string(b[i:i+4]) == "true":
			i += 4
		case c == 'n' && len(b)-i >= 4 && string(b[i:i+4]) == "null":
			i += 4
		case c == 'f' && len(b)-i >= 5 && string(b[i:i+5]) == "false":
			i += 5
		case c >= '1' && c <= '9' || c == '0' && i+1 < len(b) && (b[i+1] < '0' || b[i+1] > '9'):
			for i++; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
			}
			if i+1 < len(b) && b[i] == '.' && b[i+1] >= '0' && b[i+1] <= '9' {
				for i += 2; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
				}
			}
			if i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && !isSpace(b[i]) {
				return -1 // an exponent, or no number
			}
		default:
			return -1
		}
		// What follows a value.
		for {
			if depth == 0 {
				return i
			}
			if i = space(b, i); i >= len(b) {
				return -1
			}
			object := inObject[depth-1]
			if b[i] == ',' {
				i++
				if object {
					if i = quickName(b, space(b, i)); i < 0 {
						return -1
					}
				}
				break
			}
			if b[i] == '}' && object || b[i] == ']' && !object {
				depth--
				i++
				continue
			}
			return -1
		}
	}
}

// quickName passes over a name and its colon.
func quickName(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	if i = quickString(b, i+1); i < 0 {
		return -1
	}
	if i = space(b, i); i >= len(b) || b[i] != ':' {
		return -1
	}
	return i + 1
}

// Of eight bytes at once: every lowest and every highest bit.
const ones, tops = 0x0101010101010101, 0x8080808080808080

// quickString passes over the rest of a string, whose inside begins at i.
func quickString(b []byte, i int) int {
	for {
		// Eight bytes at once, up to a quote, a backslash or a control character.
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^ones*'"', x^ones*'\\'
			if m := ((x-ones*' ')&^x | (quote-ones)&^quote | (slash-ones)&^slash) & tops; m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i+1 >= len(b) {
				return -1
			}
			switch b[i+1] {
			case 'n', '"', 't', '\\', 'r', '/', 'b', 'f':
				i += 2
			case 'u':
				if _, ok := hex4(b[i:]); !ok {
					return -1
				}
				i += 6
			default:
				return -1
			}
		case c < ' ':
			return -1
		default:
			i++
		}
	}
}
