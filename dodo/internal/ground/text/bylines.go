package text

import (
	"fmt"
	"unicode/utf8"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// lines makes a window by lines.
func (w *window) lines() error {
	first := max(w.Query.StartLine, 1)
	offset, breaks, err := w.seek(first)
	if err != nil {
		return err
	}
	if offset >= w.size && first > 1 {
		total := breaks
		if w.size > w.body {
			last, err := w.bytes(w.size-int64(w.enc.unit()), w.size)
			if err != nil {
				return err
			}
			if w.enc.lineEnd(last) < 0 {
				total++
			}
		}
		return fault.New(contract.InvalidInput, "the file has only %d lines", total).WithHint("ask for lines that are there").With("totalLines", total)
	}
	end := min(w.size, offset+w.span())
	raw, err := w.bytes(offset, end)
	if err != nil {
		return err
	}
	w.Window.StartLine, w.Window.EndLine = first, first-1
	w.StartByte, w.EndByte = offset, offset
	if cut, err := w.appendLines(raw, end == w.size); cut || err != nil {
		w.Truncated = true
		return err
	}
	// What was read may end with a line break while the file goes on.
	w.Truncated = w.EndByte < w.size && (w.Query.EndLine == 0 || w.Window.EndLine < w.Query.EndLine)
	return nil
}

// appendLines appends lines up to the last one asked for. cut says that one did not fit, or was not
// read whole; of the first of all its beginning is there then. atEnd says that the file ends where
// raw does.
func (w *window) appendLines(raw []byte, atEnd bool) (cut bool, err error) {
	for len(raw) > 0 && (w.Query.EndLine == 0 || w.Window.EndLine < w.Query.EndLine) {
		n := w.enc.lineEnd(raw)
		whole := n >= 0 || atEnd
		if n < 0 {
			n = len(raw)
		}
		if whole {
			done, err := w.appendLine(raw[:n])
			if err != nil {
				return false, err
			}
			if done {
				raw = raw[n:]
				continue
			}
		}
		if len(w.out) == 0 {
			return true, w.appendStart(raw[:n], whole)
		}
		return true, nil
	}
	return false, nil
}

// appendLine appends a line if it fits.
func (w *window) appendLine(raw []byte) (bool, error) {
	was := len(w.out)
	w.number(w.Window.EndLine + 1)
	if len(w.out)+len(raw)/2 > w.MaxBytes {
		w.out = w.out[:was]
		return false, nil
	}
	if n := w.valid(raw); n < len(raw) {
		return false, w.bad(w.EndByte+int64(n), "is not text")
	}
	var err error
	if w.out, err = w.enc.decode(w.out, raw); err != nil {
		return false, w.bad(w.EndByte, "is not text in the line")
	}
	if len(w.out) > w.MaxBytes {
		w.out = w.out[:was]
		return false, nil
	}
	w.Window.EndLine++
	w.EndByte += int64(len(raw))
	return true, nil
}

// appendStart appends as many characters of a line as fit.
func (w *window) appendStart(raw []byte, whole bool) error {
	w.number(w.Window.EndLine + 1)
	n, err := w.appendText(raw, whole)
	if n > 0 {
		w.Window.EndLine++
	}
	return err
}

// appendText appends as many characters as fit and says how many bytes of the file they
// are. Unless the bytes are whole, a last character may be cut.
func (w *window) appendText(raw []byte, whole bool) (int, error) {
	was := len(w.out)
	good := w.valid(raw)
	out, err := w.enc.decode(w.out, raw[:good])
	if err != nil {
		return 0, w.bad(w.EndByte, "is not text")
	}
	n := good
	if len(out) > w.MaxBytes {
		cut := max(w.MaxBytes, was)
		for cut > was && !utf8.RuneStart(out[cut]) {
			cut--
		}
		out = out[:cut]
		n = w.enc.chars(raw[:good], utf8.RuneCount(out[was:]))
	} else if good < len(raw) && (whole || w.enc.char(raw[good:]) < 0) {
		return 0, w.bad(w.EndByte+int64(good), "is not text")
	}
	w.out = out
	w.EndByte += int64(n)
	return n, nil
}

// number appends the number of a line where numbers are asked for.
func (w *window) number(line int64) {
	if w.Numbered {
		w.out = fmt.Appendf(w.out, "%6d\t", line)
	}
}

// valid is how many bytes of raw are whole characters, from the first on.
func (w *window) valid(raw []byte) int {
	if w.enc == UTF8 && utf8.Valid(raw) {
		return len(raw)
	}
	i := 0
	for i < len(raw) {
		n := w.enc.char(raw[i:])
		if n <= 0 {
			break
		}
		i += n
	}
	return i
}
