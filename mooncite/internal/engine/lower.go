package engine

import (
	"encoding/binary"
	"strings"
)

// Patterns of eight bytes at a time.
const (
	highBits = 0x8080808080808080
	ones     = 0x0101010101010101
)

// lowerCase is strings.ToLower, quicker on the texts that are ASCII, which most are.
func lowerCase(s string) string {
	b := []byte(s)
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if x&highBits != 0 {
			return strings.ToLower(s)
		}
		// The high bit of a byte is set in fromA when it is at least 'A', in afterZ when it is behind 'Z'.
		fromA, afterZ := x+ones*(0x80-'A'), x+ones*(0x7f-'Z')
		binary.LittleEndian.PutUint64(b[i:], x|(fromA&^afterZ&highBits)>>2)
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c >= 0x80:
			return strings.ToLower(s)
		case c >= 'A' && c <= 'Z':
			b[i] = c | 0x20
		}
	}
	return string(b)
}
