package job

import (
	"errors"
	"io"
	"io/fs"
	"unicode/utf8"
)

// attempts is how often a stream is looked at anew whose oldest part is dropped while it is
// read.
const attempts = 5

// A span is a piece of a stream, in bytes of what the job wrote.
type span struct {
	from int64 // where data begins: behind what was asked for when that was dropped
	data []byte
	end  int64 // of the stream, as it was looked at
	gone int64 // what is before it, behind the head, is not kept; 0 when nothing is missing
}

// read gives at most max bytes of a stream from an offset on, without a gap in them.
func (s *spools) read(id string, of Stream, offset int64, max int) (p span, err error) {
	for range attempts {
		if p, err = s.readOnce(id, of, offset, max); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return p, err
}

func (s *spools) readOnce(id string, of Stream, offset int64, max int) (span, error) {
	list, err := s.segments(id, of)
	if err != nil || len(list) == 0 {
		return span{}, err
	}
	p := span{end: list[len(list)-1].end()}
	at := int64(0)
	for _, g := range list {
		if g.start > at {
			p.gone = g.start
		}
		at = g.end()
	}
	p.from = min(offset, p.end)
	for _, g := range list {
		switch {
		case g.end() <= p.from || len(p.data) == max:
			continue
		case g.start > p.from+int64(len(p.data)):
			if len(p.data) > 0 {
				return p, nil // what comes next is not there any more
			}
			p.from = g.start
		}
		skip := p.from + int64(len(p.data)) - g.start
		b := make([]byte, min(int64(max-len(p.data)), g.size-skip))
		n, err := s.part(segmentName(id, of, g.start), b, skip)
		p.data = append(p.data, b[:n]...)
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// part reads a part of one file.
func (s *spools) part(name string, b []byte, at int64) (int, error) {
	f, err := s.root.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// inside is how many bytes of a character are still to come behind what is before.
func inside(before, after []byte) int {
	for back := 1; back <= min(len(before), utf8.UTFMax-1); back++ {
		if c := before[len(before)-back:]; utf8.RuneStart(c[0]) {
			whole := append(append([]byte{}, c...), after[:min(len(after), utf8.UTFMax)]...)
			if _, n := utf8.DecodeRune(whole); n > back {
				return n - back
			}
			return 0
		}
	}
	return 0
}
