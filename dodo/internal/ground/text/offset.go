package text

import (
	"bytes"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// fromOffset makes a window from a byte on.
func (w *window) fromOffset() error {
	if w.ByteOffset > w.size {
		return fault.New(contract.InvalidInput, "the offset is behind the end of the file").WithHint("begin at 0, or go on with nextOffset").With("size", w.size)
	}
	offset, err := w.boundary(max(w.ByteOffset, w.body))
	if err != nil {
		return err
	}
	line := int64(0)
	if w.TotalLines >= 0 {
		if line, err = w.count(w.body, offset); err != nil {
			return err
		}
		line++
	}
	end := min(w.size, offset+w.span())
	raw, err := w.bytes(offset, end)
	if err != nil {
		return err
	}
	w.StartByte, w.EndByte = offset, offset
	if !w.Numbered {
		if _, err := w.appendText(raw, end == w.size); err != nil {
			return err
		}
		if line > 0 {
			w.Window.StartLine = line
			w.Window.EndLine = line - 1 + linesIn(w.out)
		}
		return nil
	}
	w.Window.StartLine, w.Window.EndLine = line, line-1
	_, err = w.appendLines(raw, end == w.size)
	return err
}

// linesIn is how many lines a text has, the last one with or without its break.
func linesIn(b []byte) int64 {
	n := int64(bytes.Count(b, []byte{'\n'}))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// boundary is where the character begins that a byte of the file is in.
func (w *window) boundary(offset int64) (int64, error) {
	const back = 4096
	from := max(w.body, offset-back)
	if w.enc.unit() == 2 {
		offset -= (offset - w.body) % 2
		from = max(w.body, offset-2)
	}
	if offset == w.body || offset == w.size || w.enc == Windows1252 || w.enc == Latin1 {
		return offset, nil
	}
	b, err := w.bytes(from, min(w.size, offset+4))
	if err != nil {
		return 0, err
	}
	at := int(offset - from)
	i := 0
	if from > w.body {
		i = w.enc.sync(b)
		if w.enc == UTF8 {
			for i = at; i > max(0, at-3) && !utf8.RuneStart(b[i]); i-- {
			}
		}
		if i > at {
			return 0, fault.New(contract.UnsupportedEncoding, "no character begins for sure in the %d bytes before the offset", back).
				WithHint("ask for lines, or for an offset behind a line break").With("offset", offset)
		}
	}
	for i < at {
		n := w.enc.char(b[i:])
		if n <= 0 {
			return 0, w.bad(from+int64(i), "is not text")
		}
		if i+n > at {
			break
		}
		i += n
	}
	return from + int64(i), nil
}
