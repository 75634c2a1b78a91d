package mcpserve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
)

// frame is one line of input, or its end.
type frame struct {
	line    []byte
	tooLong bool // line is only its beginning
	err     error

	stale bool   // another process is to take this up, and
	rest  []byte // all that came with it and after it
}

// readFrames sends the lines of in until it ends or stop is closed. A line longer
// than max is passed over without being held in memory.
//
// Whether the process is stale is asked here, with a line in hand: nobody waits for
// input then, and nothing of it can be lost.
func readFrames(in io.Reader, o connOptions, to chan<- frame, stop <-chan struct{}) {
	if len(o.unread) > 0 {
		in = io.MultiReader(bytes.NewReader(o.unread), in)
	}
	r := bufio.NewReaderSize(in, 32<<10)
	for first := len(o.unread) > 0; ; first = false {
		f := nextFrame(r, o.max)
		if o.stale != nil && !first && !f.tooLong && len(bytes.TrimSpace(f.line)) > 0 && o.stale() {
			buffered, _ := r.Peek(r.Buffered())
			select {
			case to <- frame{stale: true, rest: append(f.line, buffered...)}:
			case <-stop:
			}
			return
		}
		if f.err != nil && len(f.line) > 0 { // a last line without a newline
			select {
			case to <- frame{line: f.line, tooLong: f.tooLong}:
			case <-stop:
				return
			}
		}
		if f.err != nil {
			f = frame{err: f.err}
		}
		select {
		case to <- f:
		case <-stop:
			return
		}
		if f.err != nil {
			return
		}
	}
}

func nextFrame(r *bufio.Reader, max int) frame {
	var f frame
	for {
		part, err := r.ReadSlice('\n')
		if !f.tooLong && len(f.line)+len(part) > max {
			f.tooLong = true
			const head = 64 << 10 // enough to find the id
			f.line = append(f.line, part...)
			f.line = append([]byte(nil), f.line[:min(head, len(f.line))]...)
		}
		if !f.tooLong {
			f.line = append(f.line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		f.err = err
		return f
	}
}

// outerID finds the id of a message that cannot be read as a whole; nil when it does
// not come early enough.
func outerID(line []byte) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return nil
		}
		if key == "id" && len(value) <= 256 && value[0] != '{' && value[0] != '[' {
			return value
		}
	}
	return nil
}
