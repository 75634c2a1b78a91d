package job

import (
	"bytes"
	"fmt"
	"strings"

	"localmcp/dodo/internal/ground/text"
	"localmcp/internal/keyshape"
	"localmcp/internal/op"
)

const (
	// around is what is read before and behind a piece, so that a key that its borders cut is
	// still known for one.
	around = 8 << 10
	// holdsBack is how long a control sequence may be that a piece waits for the end of.
	holdsBack = 64 << 10
	// leastBytes is the smallest piece that is read: any character fits into it.
	leastBytes = 16
)

// A Piece is a part of what a job wrote.
type Piece struct {
	Content         string // what a terminal would show of it
	Raw             []byte // instead of Content, when the bytes themselves are asked for
	NextOffset      int64  // where to go on, in bytes of the stream
	TruncatedBefore int64  // what is before this, behind the first bytes, is not kept any more
	End             bool   // nothing follows
	Masked          int    // keys that were masked
}

// piece reads a stream from an offset on: at most so many bytes of it, and of those so many
// that the content takes at most room bytes as JSON.
func (s *Service) piece(r *record, of Stream, offset int64, most, room int, raw bool) (Piece, error) {
	grown := false
	for want := most; ; {
		p, more, err := s.pieceOf(r, of, offset, want, raw, grown)
		if err != nil {
			return p, err
		}
		if more {
			want, grown = holdsBack, true
			continue
		}
		if raw && 4*len(p.Raw)/3 <= room-4 || !raw && op.EncodedLen(p.Content) <= room || want <= leastBytes {
			return p, nil
		}
		want /= 2
	}
}

// pieceOf tries with so many bytes; more says that none can be used without some that follow.
// With force some are used in any case.
func (s *Service) pieceOf(r *record, of Stream, offset int64, want int, raw, force bool) (p Piece, more bool, err error) {
	want = max(want, leastBytes)
	got, err := s.spools.read(r.ID, of, offset, want)
	if err != nil {
		return p, false, err
	}
	next := got.from + int64(len(got.data))
	p = Piece{NextOffset: next, TruncatedBefore: got.gone, End: r.over() && next >= got.end}
	if r.over() && got.end == 0 {
		p.TruncatedBefore = r.wrote(of) // its output was removed to make room
		p.NextOffset = p.TruncatedBefore
	}
	if raw || len(got.data) == 0 {
		p.Raw = got.data
		return p, false, nil
	}
	before, err := s.spools.read(r.ID, of, got.from-min(around, got.from), int(min(around, got.from)))
	if err != nil {
		return p, false, err
	}
	if before.from+int64(len(before.data)) != got.from {
		before.data = nil // there is a gap between
	}
	data := got.data
	skip := inside(before.data, data)
	if before.data == nil {
		for skip < min(len(data), 3) && got.from > 0 && data[skip]&0xc0 == 0x80 {
			skip++
		}
	}
	data = data[skip:]
	last := p.End
	if next < got.end {
		if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
			data, last = data[:i+1], true // lines stay whole where they can
		}
	}
	content, used := text.Screen(data, last)
	if used == 0 && len(data) > 0 && next < got.end {
		if !force && want < holdsBack {
			return p, true, nil
		}
		content, used = text.Screen(data, true) // no end of it is in sight
	}
	p.NextOffset = got.from + int64(skip+used)
	p.End = p.End && p.NextOffset >= got.end
	after, err := s.spools.read(r.ID, of, p.NextOffset, around)
	if err != nil {
		return p, false, err
	}
	lead, _ := text.Screen(before.data, true)
	trail, _ := text.Screen(after.data, true)
	p.Content, p.Masked = keyshape.Mask(lead+content+trail, len(lead), len(lead)+len(content))
	return p, false, nil
}

// wrote is how much the job wrote to a stream.
func (r *record) wrote(of Stream) int64 {
	if of == Stderr {
		return r.ErrBytes
	}
	return r.OutBytes
}

// lookAt is how much of a stream is looked at, from each end, for an answer that shows its
// beginning and its end. Much of it may be a progress bar that leaves one line.
const lookAt = 128 << 10

// tailBytes is the end of a stream that an answer shows at most (spec dodo-catalog 8).
const tailBytes = 4 << 10

// An excerpt is the beginning and the end of a stream.
type excerpt struct {
	head, tail string
	cut        bool  // there is more between, or before
	next       int64 // where job_output goes on behind head
}

// ends are both ends of a stream as they are looked at for an excerpt.
type ends struct {
	first, last string // last is empty when first is all of it
	raw         []byte // what first was made from
	whole       bool
}

// look reads the ends of a stream.
func (s *Service) look(id string, of Stream) (e ends, err error) {
	got, err := s.spools.read(id, of, 0, lookAt)
	if err != nil {
		return e, err
	}
	e.raw = got.data
	e.whole = int64(len(got.data)) == got.end
	e.first, _ = text.Screen(got.data, true)
	e.first, _ = keyshape.Mask(e.first, 0, len(e.first))
	if e.whole {
		return e, nil
	}
	tail, err := s.spools.read(id, of, got.end-lookAt, lookAt)
	if err != nil {
		return e, err
	}
	data := tail.data
	if i := bytes.IndexByte(data, '\n'); i >= 0 && i < len(data)/2 {
		data = data[i+1:]
	}
	e.last, _ = text.Screen(data, true)
	e.last, _ = keyshape.Mask(e.last, 0, len(e.last))
	return e, nil
}

// size is what showing all of it takes, in characters of JSON.
func (e ends) size() int { return cost(e.first) + cost(e.last) }

// within cuts an excerpt to so many characters of JSON.
func (e ends) within(room int) excerpt {
	if e.whole && cost(e.first) <= room {
		return excerpt{head: e.first, next: int64(len(e.raw))}
	}
	x := excerpt{cut: true}
	last := e.last
	if e.whole {
		last = e.first
	}
	x.tail = lastPart(last, min(tailBytes, room/2))
	x.head = firstPart(e.first, room-cost(x.tail))
	// Screen keeps every line break, so lines tell where the head ends in the bytes.
	for range strings.Count(x.head, "\n") {
		x.next += int64(bytes.IndexByte(e.raw[x.next:], '\n')) + 1
	}
	return x
}

// cost is what a text takes in JSON, without the marks around it.
func cost(s string) int {
	return len(s) + strings.Count(s, "\n") + strings.Count(s, "\t") + strings.Count(s, `"`) + strings.Count(s, `\`)
}

// firstPart cuts a text behind its first so many characters of JSON: at the end of a line if
// there is one in the second half.
func firstPart(s string, room int) string {
	n := 0
	for i, r := range s {
		if n += cost(string(r)); n > room {
			s = s[:i]
			break
		}
	}
	if n <= room {
		return s
	}
	if i := strings.LastIndexByte(s, '\n'); i >= len(s)/2 {
		s = s[:i+1]
	}
	return s
}

// lastPart is firstPart from the end.
func lastPart(s string, room int) string {
	n, at := 0, len(s)
	for at > 0 {
		from := at - 1
		for from > 0 && s[from]&0xc0 == 0x80 {
			from--
		}
		if n += cost(s[from:at]); n > room {
			break
		}
		at = from
	}
	s = s[at:]
	if at > 0 {
		if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
			s = s[i+1:]
		}
	}
	return s
}

// excerpts shows both streams of a job in so many characters of JSON together.
func (s *Service) excerpts(id string, room int) (out, err excerpt, fail error) {
	var both [2]ends
	for i, of := range []Stream{Stdout, Stderr} {
		if both[i], fail = s.look(id, of); fail != nil {
			return out, err, fmt.Errorf("read the output of a job: %w", fail)
		}
	}
	need := [2]int{both[0].size(), both[1].size()}
	share := room / 2
	forErr := min(need[1], max(share, room-need[0]))
	return both[0].within(room - forErr), both[1].within(forErr), nil
}
