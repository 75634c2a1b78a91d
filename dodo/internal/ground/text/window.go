package text

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// DefaultBytes is how much content a window has at most when the query names no bound.
const DefaultBytes = 48 << 10

// leastBytes is the smallest bound: a number and a character fit into it.
const leastBytes = 32

// A Query says which part of a file is wanted. The zero value is all lines, up to the
// bound. Lines, last lines and bytes exclude each other.
type Query struct {
	// Encoding is that of the file; empty: what Detect says.
	Encoding Encoding
	// StartLine and EndLine are the first and the last line, from 1; 0 is the first and
	// the last of the file. An end behind the last line is the last line.
	StartLine, EndLine int64
	// TailLines is how many of the last lines are wanted.
	TailLines int64
	// ByBytes asks for content from ByteOffset of the file on. An offset inside of a
	// character is taken for its first byte.
	ByBytes    bool
	ByteOffset int64
	// MaxBytes bounds the content, in UTF-8 and with line numbers; 0: DefaultBytes.
	// It is at least 32.
	MaxBytes int
	// Numbered puts the number of a line before it: six places and a tab.
	Numbered bool
	// CountBytes is the size up to which a file's lines are counted; of a larger one the
	// total, and lines that were reached by seeking, have no number.
	CountBytes int64
}

// A Window is a part of a file as text.
type Window struct {
	Kind    Kind   // Encoding is the one that was read with
	Content string // exact, but for the encoding, the mark and asked for line numbers

	StartLine  int64 // the first line of Content, from 1; 0: not known
	EndLine    int64 // the last one; StartLine-1 when Content is empty; 0: not known
	TotalLines int64 // -1: not known

	StartByte  int64 // of the file, where Content begins
	EndByte    int64 // and where it ends
	NextOffset int64 // EndByte if there is more behind it, otherwise -1

	Partial   bool // Content is not all of the file
	Truncated bool // Content is not all that was asked for: the bound cut it
	Hidden    int  // control and directional characters in Content, other than LF, TAB and CRLF
}

// Read gives a window of size bytes that r has. Of a binary file, when no encoding was
// asked for, it gives the kind alone. It fails with UNSUPPORTED_ENCODING (detail offset
// names the first bad byte, where it is known), INVALID_INPUT for a query that does not
// fit the file, FILE_CHANGED when r has fewer bytes, or the error of r or ctx.
func Read(ctx context.Context, r io.ReaderAt, size int64, q Query) (Window, error) {
	w := window{ctx: ctx, r: r, size: size, Query: q}
	w.TotalLines, w.NextOffset = -1, -1
	if w.MaxBytes <= 0 {
		w.MaxBytes = DefaultBytes
	}
	w.MaxBytes = max(w.MaxBytes, leastBytes)
	if err := w.read(); err != nil {
		return Window{Kind: w.Kind, TotalLines: -1, NextOffset: -1}, err
	}
	return w.Window, nil
}

// A window is one that is being made.
type window struct {
	ctx  context.Context
	r    io.ReaderAt
	size int64
	body int64 // where the text begins, behind the mark
	Query
	Window
	enc Encoding
	out []byte
}

func (w *window) read() error {
	if err := w.check(); err != nil {
		return err
	}
	head, err := w.bytes(0, min(w.size, HeadBytes))
	if err != nil {
		return err
	}
	w.Kind = Detect(head, int64(len(head)) == w.size)
	if w.enc = w.Query.Encoding; w.enc == "" {
		if w.enc = w.Kind.Encoding; w.enc == "" {
			if w.Kind.Binary {
				w.Partial = w.size > 0
				return nil
			}
			return w.unknown(head)
		}
	}
	w.body = int64(w.enc.bom(head))
	w.Kind.Encoding, w.Kind.BOM, w.Kind.Binary = w.enc, int(w.body), false
	w.Kind.Name, w.Kind.MIME = textName, textMIME // the caller said so
	if w.enc.unit() == 2 && w.size%2 != 0 {
		return w.bad(w.size-1, "ends inside of a character")
	}
	if w.size <= w.CountBytes {
		if w.TotalLines, err = w.count(w.body, w.size); err != nil {
			return err
		}
		if w.size > w.body {
			last, err := w.bytes(w.size-int64(w.enc.unit()), w.size)
			if err != nil {
				return err
			}
			if w.enc.lineEnd(last) < 0 {
				w.TotalLines++
			}
		}
	}
	switch {
	case w.ByBytes:
		err = w.fromOffset()
	case w.TailLines > 0:
		err = w.tail()
	default:
		err = w.lines()
	}
	if err != nil {
		return err
	}
	w.Content = string(w.out)
	w.Hidden = hiddenIn(w.Content)
	w.Partial = w.StartByte > w.body || w.EndByte < w.size
	if w.EndByte < w.size {
		w.NextOffset = w.EndByte
	}
	return nil
}

func (w *window) check() error {
	q := w.Query
	switch {
	case q.Encoding != "" && !q.Encoding.known():
		return fault.New(contract.InvalidInput, "there is no such encoding").WithHint("the encodings are %s", list(Encodings))
	case q.StartLine < 0 || q.EndLine < 0 || q.TailLines < 0 || q.ByteOffset < 0:
		return fault.New(contract.InvalidInput, "lines and offsets are not negative").WithHint("count lines from 1 and bytes from 0")
	case q.EndLine > 0 && q.EndLine < q.StartLine:
		return fault.New(contract.InvalidInput, "the last line is before the first one").WithHint("give the smaller one as startLine")
	case q.TailLines > 0 && (q.StartLine > 0 || q.EndLine > 0 || q.ByBytes), q.ByBytes && (q.StartLine > 0 || q.EndLine > 0):
		return fault.New(contract.InvalidInput, "a window is asked for by lines, by the last lines or by an offset, not by two of them").
			WithHint("give startLine and endLine, or tailLines, or byteOffset")
	case q.Numbered && w.size > q.CountBytes && (q.TailLines > 0 || q.ByBytes):
		return fault.New(contract.InvalidInput, "the file is so large that its lines are not counted, and the window has no line numbers").
			WithHint("ask without numbered, or by startLine")
	}
	return nil
}

// unknown says where bytes stop to be UTF-8.
func (w *window) unknown(head []byte) error {
	i := 0
	for i < len(head) {
		n := UTF8.char(head[i:])
		if n <= 0 {
			break
		}
		i += n
	}
	return fault.New(contract.UnsupportedEncoding, "the file is text in an encoding other than UTF-8, or binary").
		WithHint("ask with encoding, one of %s", list(Encodings[1:])).With("offset", i).With("line", 1+bytes.Count(head[:i], []byte{'\n'}))
}

func (w *window) bad(offset int64, what string) error {
	return fault.New(contract.UnsupportedEncoding, "the file %s at byte %d, read as %s", what, offset, w.enc).
		WithHint("ask with encoding, one of %s", list(Encodings)).With("offset", offset)
}

// bytes reads a part of the file whole.
func (w *window) bytes(from, to int64) ([]byte, error) {
	b := make([]byte, to-from)
	return b, w.readFull(b, from)
}

func (w *window) readFull(b []byte, from int64) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	n, err := w.r.ReadAt(b, from)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fault.New(contract.FileChanged, "the file became shorter while it was read").WithHint("read it again").Retry()
	}
	return fmt.Errorf("read at %d: %w", from, err)
}

// chunk is how much is read at once where lines are counted.
const chunk = 256 << 10

// count counts line breaks.
func (w *window) count(from, to int64) (int64, error) {
	n := int64(0)
	buf := make([]byte, min(chunk, to-from))
	for from < to {
		b := buf[:min(chunk, to-from)]
		if err := w.readFull(b, from); err != nil {
			return 0, err
		}
		n += int64(w.enc.lineEnds(b))
		from += int64(len(b))
	}
	return n, nil
}

// seek finds where a line begins. When there are fewer lines it gives the size and how
// many line breaks there are.
func (w *window) seek(line int64) (offset, breaks int64, err error) {
	offset = w.body
	buf := make([]byte, min(chunk, w.size-w.body))
	for offset < w.size {
		if breaks == line-1 {
			return offset, breaks, nil
		}
		b := buf[:min(chunk, w.size-offset)]
		if err := w.readFull(b, offset); err != nil {
			return 0, 0, err
		}
		if n := int64(w.enc.lineEnds(b)); breaks+n < line-1 {
			breaks += n
			offset += int64(len(b))
			continue
		}
		for breaks < line-1 {
			n := w.enc.lineEnd(b)
			b, offset = b[n:], offset+int64(n)
			breaks++
		}
	}
	return offset, breaks, nil
}

// span is how many bytes of the file are read for a window at most: in no encoding do more
// than two bytes become one.
func (w *window) span() int64 { return 2*int64(w.MaxBytes) + 8 }
