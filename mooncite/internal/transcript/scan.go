package transcript

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"sync"

	"localmcp/mooncite/internal/evidence"
)

// Shape says how the bytes of a file are read.
type Shape int

// The shapes.
const (
	None     Shape = iota // not a transcript
	Lines                 // JSONL, one record a line
	Packed                // JSONL packed with zstd; ranges count unpacked bytes
	Document              // one JSON document; records are cut out of it
)

// Position is a place between two records.
type Position struct {
	Offset int64 // bytes before it
	Line   int64 // physical lines before it
}

const (
	firstBuffer = 256 << 10
	lineSlack   = 4 << 10 // line end, byte order mark and stray bytes around a record
)

// Scan reads the records of f from r, whose first byte is the one at at, and gives
// them to p, whose entries go to emit. It returns the position behind the last
// complete line: what follows it has no line end yet and was not looked at. For a
// Packed file r gives the unpacked text.
//
// Memory stays below a small multiple of the longest record: a line longer than
// [evidence.MaxRecordBytes] is passed over without being held.
func Scan(r io.Reader, f File, at Position, p Parser, emit func(*Record, *Entry) error) (Position, error) {
	if ShapeOf(f) == Document {
		return scanDocument(r, f, at, p, emit)
	}
	first := buffers.Get().(*[firstBuffer]byte)
	defer buffers.Put(first)
	return (&lineScanner{r: r, at: at, p: p, emit: emit, buf: first[:]}).run()
}

// buffers are read into. Most files need one only, and there are many files.
var buffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}

type lineScanner struct {
	r     io.Reader
	at    Position // behind the last complete line
	p     Parser
	emit  func(*Record, *Entry) error
	check checker
	buf   []byte
	rec   Record // the one at hand
}

func (s *lineScanner) run() (Position, error) {
	var (
		have, seen int   // bytes held, and how many of them hold no line end
		passed     int64 // bytes of the present line already let go: it is too long
	)
	for empty := 0; ; {
		n, err := s.r.Read(s.buf[have:])
		if n < 0 || n > len(s.buf)-have {
			return s.at, errors.New("transcript: bad read count")
		}
		have += n
		begin := 0
		for {
			k := bytes.IndexByte(s.buf[seen:have], '\n')
			if k < 0 {
				seen = have
				break
			}
			end := seen + k
			length := passed + int64(end-begin)
			if err := s.line(s.buf[begin:end], length); err != nil {
				return s.at, err
			}
			s.at.Offset += length + 1
			s.at.Line++
			begin, seen, passed = end+1, end+1, 0
		}
		if begin > 0 {
			copy(s.buf, s.buf[begin:have])
			have, seen = have-begin, seen-begin
		}
		switch {
		case err == io.EOF:
			return s.at, nil
		case err != nil:
			return s.at, err
		case n == 0:
			if empty++; empty > 100 {
				return s.at, io.ErrNoProgress
			}
		default:
			empty = 0
		}
		if passed > 0 || have > evidence.MaxRecordBytes+lineSlack {
			passed += int64(have)
			have, seen = 0, 0
		} else if have == len(s.buf) {
			grown := make([]byte, min(2*len(s.buf), evidence.MaxRecordBytes+2*lineSlack))
			copy(grown, s.buf[:have])
			s.buf = grown
		}
	}
}

// line takes one physical line; b is all of it unless length says it was too long.
func (s *lineScanner) line(b []byte, length int64) error {
	line, start := s.at.Line+1, s.at.Offset
	if length > int64(len(b)) || length > evidence.MaxRecordBytes+lineSlack {
		s.p.Damaged(line, start, length, true)
		return nil
	}
	if start == 0 && bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		b, start = b[3:], 3
	}
	i := space(b, 0)
	if i == len(b) {
		return nil // blank
	}
	if len(b) > evidence.MaxRecordBytes {
		s.p.Damaged(line, start, int64(len(b)), true)
		return nil
	}
	if b[i] == '{' {
		if n, ok := s.check.value(b[i:]); ok && space(b, i+n) == len(b) {
			return s.record(line, start, b)
		}
	}
	return s.salvage(line, start, b)
}

func (s *lineScanner) record(line, start int64, b []byte) error {
	s.rec = Record{Line: line, Start: start, End: start + int64(len(b)), Bytes: b, Digest: sha256.Sum256(b), checked: true}
	return s.p.Record(&s.rec, s.emit)
}

// salvage finds the whole records in a damaged line. The forms that occur: two
// records without a line end between them, a record cut off by a crash with the
// next one behind it, runs of NUL bytes, and bytes that were overwritten.
//
// An object is a record when it begins the line or follows a record, with at most
// NUL bytes between. Elsewhere it must have the members of a record and be clean
// on its left (NUL) or right side: what a torn record holds inside is none.
func (s *lineScanner) salvage(line, start int64, b []byte) error {
	// Each try costs the bytes it looks at; a line made to cost much is given up.
	budget := 16*len(b) + 4096
	clean, kept := true, 0
	for i := 0; i < len(b); {
		for i < len(b) && (b[i] == 0 || isSpace(b[i])) {
			i++
		}
		if i == len(b) {
			break
		}
		if b[i] != '{' {
			k := bytes.IndexByte(b[i:], '{')
			if k < 0 {
				break
			}
			clean = false
			i += k
		}
		n, ok := s.check.value(b[i:])
		if budget -= n + 64; budget < 0 {
			break
		}
		if ok {
			if clean || resembles(b[i:i+n]) && (b[i-1] == 0 || cleanRight(b[i+n:])) {
				if err := s.record(line, start+int64(i), b[i:i+n]); err != nil {
					return err
				}
				kept += n
				clean = true
			} else {
				clean = false
			}
			i += n
			continue
		}
		// What could begin the next record is any brace behind this one. When the
		// tries so far were dear, the likeliest: the last one before the fault, which
		// stands inside what looked like a string, or else the first one after it.
		next := -1
		if budget > 8*len(b) || i+n >= len(b) {
			next = bytes.IndexByte(b[i+1:], '{')
		} else if next = bytes.LastIndexByte(b[i+1:i+n+1], '{'); next < 0 {
			if next = bytes.IndexByte(b[i+n+1:], '{'); next >= 0 {
				next += n
			}
		}
		if next < 0 {
			break
		}
		i += 1 + next
		clean = false
	}
	s.p.Damaged(line, start, int64(len(b)-kept), false)
	return nil
}

// cleanRight reports whether what follows an object can follow a record.
func cleanRight(b []byte) bool {
	i := space(b, 0)
	return i == len(b) || b[i] == 0 || b[i] == '{'
}

// resembles reports whether an object found in a damaged line has what records
// have and the parts of a record have not.
func resembles(b []byte) bool {
	kind, anchor := false, false
	for name, v := range value(b).members() {
		switch string(name) {
		case "type", "record_type":
			kind = kind || v.isString()
		case "timestamp", "uuid", "sessionId", "parentId", "payload", "leafUuid", "message", "role", "call_id", "summary", "customTitle", "title":
			anchor = true
		}
	}
	return kind && anchor
}
