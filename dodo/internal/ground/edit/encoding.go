package edit

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// The encodings that can be edited, by the names that read_files uses.
const (
	utf8Name    = "utf-8"
	utf16LEName = "utf-16le"
	utf16BEName = "utf-16be"
)

// binaryHead is how many bytes of a text are searched for a NUL, which no text file has.
const binaryHead = 8192

// maxFile is the largest file; callers have smaller bounds.
const maxFile = 1 << 30

// A form is how a file writes its text: what is needed to write it back.
type form struct {
	bom   []byte           // as the file has it
	order binary.ByteOrder // of UTF-16; nil: UTF-8
}

// decode gives the text of a file in UTF-8 without its mark. An empty name asks the mark,
// and without one means UTF-8. What decode accepts, form.encode writes back to the same bytes.
func decode(file []byte, name string) (text []byte, f form, err error) {
	if len(file) > maxFile {
		return nil, form{}, fault.New(contract.FileTooLarge, "files of more than %d bytes are not edited", maxFile)
	}
	le, be := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
	switch {
	case name == utf16LEName || name == "" && bytes.HasPrefix(file, le):
		f.order = binary.LittleEndian
		if bytes.HasPrefix(file, le) {
			f.bom = le
		}
	case name == utf16BEName || name == "" && bytes.HasPrefix(file, be):
		f.order = binary.BigEndian
		if bytes.HasPrefix(file, be) {
			f.bom = be
		}
	case name == utf8Name || name == "":
		if bytes.HasPrefix(file, []byte("\ufeff")) {
			f.bom = file[:3:3]
		}
	default:
		return nil, form{}, fault.New(contract.UnsupportedEncoding, "files in this encoding can be read, but not edited").
			WithHint("only UTF-8 and UTF-16 are edited; convert the file with a command first if its owner wants that").With("encoding", name)
	}
	text = file[len(f.bom):]
	if f.order != nil {
		ok := false
		if text, ok = fromUTF16(text, f.order); !ok {
			return nil, form{}, fault.New(contract.UnsupportedEncoding, "the file is not valid UTF-16").WithHint("only UTF-8 and UTF-16 files are edited")
		}
	} else if !utf8.Valid(text) {
		return nil, form{}, fault.New(contract.UnsupportedEncoding, "the file is binary or not valid UTF-8").
			WithHint("only UTF-8 and UTF-16 files are edited; read_files can show text of other encodings")
	}
	if bytes.IndexByte(text[:min(len(text), binaryHead)], 0) >= 0 {
		return nil, form{}, fault.New(contract.UnsupportedEncoding, "the file is binary").WithHint("only UTF-8 and UTF-16 files are edited")
	}
	return text, f, nil
}

// size is how many bytes a text takes in the file.
func (f form) size(text []byte) int {
	if f.order == nil {
		return len(text)
	}
	n := 0
	for len(text) > 0 {
		r, w := utf8.DecodeRune(text)
		n += 2 * utf16.RuneLen(r)
		text = text[w:]
	}
	return n
}

// encode writes a text as the file did, mark included.
func (f form) encode(text []byte) []byte {
	if f.order == nil {
		if len(f.bom) == 0 {
			return text
		}
		return slices.Concat(f.bom, text)
	}
	out := append(make([]byte, 0, len(f.bom)+f.size(text)), f.bom...)
	for len(text) > 0 {
		r, w := utf8.DecodeRune(text)
		if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
			out = appendUnit(out, f.order, uint16(hi))
			r = lo
		}
		out = appendUnit(out, f.order, uint16(r))
		text = text[w:]
	}
	return out
}

func appendUnit(b []byte, order binary.ByteOrder, u uint16) []byte {
	if order == binary.LittleEndian {
		return append(b, byte(u), byte(u>>8))
	}
	return append(b, byte(u>>8), byte(u))
}

// fromUTF16 decodes what can be written back the same: whole units, no half of a pair alone.
func fromUTF16(b []byte, order binary.ByteOrder) ([]byte, bool) {
	if len(b)%2 != 0 {
		return nil, false
	}
	out := make([]byte, 0, len(b)/2+len(b)/8)
	for i := 0; i < len(b); i += 2 {
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(b) {
				return nil, false
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(b[i+2:]))); r == utf8.RuneError {
				return nil, false
			}
			i += 2
		}
		out = utf8.AppendRune(out, r)
	}
	return out, true
}
