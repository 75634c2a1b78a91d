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
}

// readFrames sends the lines of in until it ends or stop is closed. A line longer
// than max is passed over without being held in memory.
func readFrames(in io.Reader, max int, to chan<- frame, stop <-chan struct{}) {
	r := bufio.NewReaderSize(in, 32<<10)
	for {
		f := nextFrame(r, max)
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
