package text

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/transform"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Encoding is how characters stand in a file, by the name that callers use.
type Encoding string

// The encodings that can be read (decisions 3.12). Only UTF-8, and UTF-16 with its mark,
// are found without being asked for.
const (
	UTF8        Encoding = "utf-8"
	UTF16LE     Encoding = "utf-16le"
	UTF16BE     Encoding = "utf-16be"
	Windows1252 Encoding = "windows-1252"
	Latin1      Encoding = "iso-8859-1"
	ShiftJIS    Encoding = "shift_jis"
	GB18030     Encoding = "gb18030"
)

// Encodings are the encodings that can be read.
var Encodings = []Encoding{UTF8, UTF16LE, UTF16BE, Windows1252, Latin1, ShiftJIS, GB18030}

// list names encodings in a sentence.
func list(encodings []Encoding) string {
	names := make([]string, len(encodings))
	for i, e := range encodings {
		names[i] = string(e)
	}
	return strings.Join(names, ", ")
}

// unit is how many bytes a line break takes.
func (e Encoding) unit() int {
	if e == UTF16LE || e == UTF16BE {
		return 2
	}
	return 1
}

// library is the encoding in the library; nil: it is decoded here, where bad bytes are
// told from U+FFFD.
func (e Encoding) library() encoding.Encoding {
	switch e {
	case Windows1252:
		return charmap.Windows1252
	case Latin1:
		return charmap.ISO8859_1
	case ShiftJIS:
		return japanese.ShiftJIS
	case GB18030:
		return simplifiedchinese.GB18030
	}
	return nil
}

// known reports whether an encoding can be read.
func (e Encoding) known() bool { return e == UTF8 || e.unit() == 2 || e.library() != nil }

// bom is the mark at the beginning of a file in an encoding, if it is there.
func (e Encoding) bom(head []byte) int {
	mark := ""
	switch e {
	case UTF8:
		mark = "\ufeff"
	case UTF16LE:
		mark = "\xff\xfe"
	case UTF16BE:
		mark = "\xfe\xff"
	case GB18030:
		mark = "\x84\x31\x95\x33"
	}
	if mark != "" && bytes.HasPrefix(head, []byte(mark)) {
		return len(mark)
	}
	return 0
}

// A char is the length of the first character of b in bytes; 0: it is not whole, -1: it is
// none.
func (e Encoding) char(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	switch e {
	case UTF8:
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if !utf8.FullRune(b) {
				return 0
			}
			return -1
		}
		return n
	case UTF16LE, UTF16BE:
		if len(b) < 2 {
			return 0
		}
		r := e.unit16(b)
		if !utf16.IsSurrogate(r) {
			return 2
		}
		if r >= 0xdc00 {
			return -1
		}
		if len(b) < 4 {
			return 0
		}
		if utf16.DecodeRune(r, e.unit16(b[2:])) == utf8.RuneError {
			return -1
		}
		return 4
	case ShiftJIS:
		c := b[0]
		if c < 0x80 || c >= 0xa1 && c <= 0xdf {
			return 1
		}
		return pair(b, c >= 0x81 && c <= 0xfc, func(t byte) bool { return t >= 0x40 && t <= 0xfc && t != 0x7f })
	case GB18030:
		c := b[0]
		if c <= 0x80 {
			return 1
		}
		lead := c >= 0x81 && c <= 0xfe
		if len(b) > 1 && lead && b[1] >= 0x30 && b[1] <= 0x39 {
			switch {
			case len(b) > 2 && (b[2] < 0x81 || b[2] > 0xfe), len(b) > 3 && (b[3] < 0x30 || b[3] > 0x39):
				return -1
			case len(b) < 4:
				return 0
			}
			return 4
		}
		return pair(b, lead, func(t byte) bool { return t >= 0x40 && t <= 0xfe && t != 0x7f })
	}
	return 1
}

// pair is the length of a character of two bytes.
func pair(b []byte, lead bool, trail func(byte) bool) int {
	switch {
	case !lead:
		return -1
	case len(b) == 1:
		return 0
	case !trail(b[1]):
		return -1
	}
	return 2
}

func (e Encoding) unit16(b []byte) rune {
	if e == UTF16LE {
		return rune(b[0]) | rune(b[1])<<8
	}
	return rune(b[0])<<8 | rune(b[1])
}

// sync is the first place in b where a character surely begins when b was cut out at any
// byte; in UTF-16 at any unit. It is len(b) when there is none.
func (e Encoding) sync(b []byte) int {
	switch e {
	case UTF8:
		for i, c := range b {
			if utf8.RuneStart(c) {
				return i
			}
		}
		return len(b)
	case UTF16LE, UTF16BE:
		if len(b) >= 2 && e.unit16(b)&^0x3ff == 0xdc00 {
			return 2
		}
		return 0
	case ShiftJIS, GB18030:
		// Behind a byte that no character ends with or goes on with.
		for i, c := range b {
			if c < 0x30 {
				return i + 1
			}
		}
		return len(b)
	}
	return 0
}

// decode appends the text of whole characters to dst.
func (e Encoding) decode(dst, b []byte) ([]byte, error) {
	switch e {
	case UTF8:
		if !utf8.Valid(b) {
			return dst, errBytes
		}
		return append(dst, b...), nil
	case UTF16LE, UTF16BE:
		for len(b) > 0 {
			n := e.char(b)
			if n <= 0 {
				return dst, errBytes
			}
			r := e.unit16(b)
			if n == 4 {
				r = utf16.DecodeRune(r, e.unit16(b[2:]))
			}
			dst = utf8.AppendRune(dst, r)
			b = b[n:]
		}
		return dst, nil
	}
	out, _, err := transform.Bytes(e.library().NewDecoder(), b)
	if err != nil {
		return dst, errBytes
	}
	// The library writes U+FFFD for bytes that mean nothing. GB18030 can spell it, too.
	if n := bytes.Count(out, []byte("\ufffd")); n > 0 && (e != GB18030 || n != bytes.Count(b, []byte("\x84\x31\xa4\x37"))) {
		return dst, errBytes
	}
	return append(dst, out...), nil
}

var errBytes = fault.New(contract.UnsupportedEncoding, "the bytes are not text in this encoding")
