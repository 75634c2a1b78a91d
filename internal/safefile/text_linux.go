package safefile

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// textHead is how much of a file is looked at to know whether it is text, in bytes.
const textHead = 64 << 10

// LoadText is [Dir.Load] for those who look for text in many files: a file of more than max
// bytes is not read, and of one that is no text only the beginning. text is false then.
// No text is what has a NUL in its first 64 KiB and no mark of UTF-16 at its start.
func (d *Dir) LoadText(name string, buf []byte, max int64) (data []byte, in Info, text, more bool, err error) {
	fd, in, err := d.open(name)
	if err != nil {
		return buf[:0], Info{}, false, false, err
	}
	defer unix.Close(fd)
	if in.Size > max {
		return buf[:0], in, false, true, nil
	}
	if want := in.Size + 1; int64(cap(buf)) < want {
		buf = make([]byte, 0, want+want/2)
	}
	data = buf[:0]
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)] // it grew since
		}
		room := data[len(data):cap(data)]
		if len(data) == 0 && len(room) > textHead {
			room = room[:textHead]
		}
		n, err := unix.Read(fd, room)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return data, in, false, false, pathError("read", name, err)
		}
		first := len(data) == 0
		data = data[:len(data)+n]
		switch {
		case int64(len(data)) > max:
			return data[:0], in, false, true, nil
		case first && !marked(data) && bytes.IndexByte(data, 0) >= 0:
			return data, in, false, false, nil
		case n == 0, int64(len(data)) == in.Size: // what was added since then came too late
			return data, in, true, false, nil
		}
	}
}

// marked reports whether a text begins with the mark of UTF-16.
func marked(b []byte) bool {
	return len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff)
}
