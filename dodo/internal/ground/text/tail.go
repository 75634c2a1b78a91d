package text

import (
	"fmt"
	"unicode/utf8"
)

// tail makes a window of the last lines.
func (w *window) tail() error {
	from := max(w.body, w.size-w.span())
	if w.enc.unit() == 2 {
		from -= (from - w.body) % 2
	}
	raw, err := w.bytes(from, w.size)
	if err != nil {
		return err
	}
	// Where the wanted lines begin, the last first; a break at the very end begins no line.
	starts := w.enc.lastLines(raw, w.TailLines)
	if int64(len(starts)) < w.TailLines {
		switch {
		case from == w.body:
			if len(raw) > 0 {
				starts = append(starts, 0)
			}
		case len(starts) == 0:
			w.Truncated = true
			starts = append(starts, w.enc.sync(raw))
		default:
			w.Truncated = true
		}
	}
	line := int64(0) // of the window's first line
	if w.TotalLines >= 0 {
		line = w.TotalLines + 1 - int64(len(starts))
	}
	begin := len(raw)
	if len(starts) > 0 {
		begin = starts[len(starts)-1]
	}
	if n := w.valid(raw[begin:]); n < len(raw)-begin {
		return w.bad(from+int64(begin+n), "is not text")
	}
	// The end matters: what does not fit is left out at the beginning.
	sizes := make([]int, len(starts))
	total, end := 0, len(raw)
	for i, s := range starts {
		out, err := w.enc.decode(nil, raw[s:end])
		if err != nil {
			return w.bad(from+int64(s), "is not text in the line")
		}
		sizes[i], end = len(out), s
		if w.Numbered {
			sizes[i] += len(fmt.Sprintf("%6d\t", line+int64(len(starts)-1-i)))
		}
		if total += sizes[i]; total > w.MaxBytes && i > 0 {
			w.Truncated = true
			line += int64(len(starts) - i)
			starts = starts[:i]
			break
		}
	}
	w.StartByte, w.EndByte = w.size, w.size
	if len(starts) == 0 {
		if w.TotalLines >= 0 {
			w.Window.StartLine, w.Window.EndLine = 1, 0
		}
		return nil
	}
	begin = starts[len(starts)-1]
	if len(starts) == 1 && sizes[0] > w.MaxBytes {
		w.Truncated = true
		w.number(line)
		out, _ := w.enc.decode(nil, raw[begin:])
		cut := len(out) - max(w.MaxBytes-len(w.out), 0)
		for cut < len(out) && !utf8.RuneStart(out[cut]) {
			cut++
		}
		begin += w.enc.chars(raw[begin:], utf8.RuneCount(out[:cut]))
		w.out = append(w.out, out[cut:]...)
	} else {
		end := begin
		for i := len(starts) - 1; i >= 0; i-- {
			w.number(line + int64(len(starts)-1-i))
			if end = len(raw); i > 0 {
				end = starts[i-1]
			}
			w.out, _ = w.enc.decode(w.out, raw[starts[i]:end])
		}
	}
	w.StartByte = from + int64(begin)
	if w.TotalLines >= 0 {
		w.Window.StartLine, w.Window.EndLine = line, w.TotalLines
	}
	return nil
}
