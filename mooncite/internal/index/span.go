package index

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/evidence"
)

// DigestSize is how much of a record's SHA-256 the index keeps, in bytes.
const DigestSize = 16

// Span is one indexed span. Line, Start and End count from the beginning of the
// span's unit.
type Span struct {
	Doc     int64 // document number
	Unit    int64
	Entry   string // raw entry id
	Parent  string // raw entry id of the parent, or ""
	Ordinal int
	Role    evidence.Role
	Kind    string
	Class   evidence.Class
	Off     bool // off the current branch
	Copy    bool // marked by its parser as another session's entry
	Gone    bool // forgotten: the text was taken out
	Hidden  bool // searched but neither kept nor cited; Ordinal means nothing
	Project int64
	Time    int64 // milliseconds since 1970 UTC, or evidence.NoTime
	Line    int64
	Start   int64
	End     int64
	Digest  [DigestSize]byte
	Size    int // bytes of text

	block *Block // that it was read from, with its text
	from  int    // where the text begins in the block's
}

// Text returns the text of a span that a snapshot gave. Only then is its block unpacked.
func (s *Span) Text() (string, error) {
	if s.block == nil || s.Size == 0 {
		return "", nil
	}
	text, err := s.block.open()
	if err != nil {
		return "", err
	}
	return text[s.from : s.from+s.Size], nil
}

var errDamaged error = fault.New(sqlitedb.Damaged, "the index is damaged").WithHint("%s", wayOut)

const metaVersion = 1

// Flag bits of a span in a block.
const (
	flagSameEntry = 1 << iota // another span of the entry before
	flagSameRecord
	flagOff
	flagCopy
	flagTimeless
	flagGone
	flagHidden
)

// How a parent is written.
const (
	parentNone = iota
	parentPrevious
	parentOwn
)

// How an id is written.
const (
	idText = iota
	idUUID
	idHex
	idLine
)

var roleCode = func() map[evidence.Role]byte {
	m := map[evidence.Role]byte{}
	for i, r := range evidence.Roles() {
		m[r] = byte(i)
	}
	return m
}()

// encodeSpans packs the metadata of a block's spans; decodeSpans is its inverse.
// Doc and Unit are not part of it.
func encodeSpans(spans []Span) []byte {
	b := append(make([]byte, 0, 64*len(spans)+16), metaVersion)
	var kinds []string
	index := map[string]int{}
	for i := range spans {
		if _, ok := index[spans[i].Kind]; !ok {
			index[spans[i].Kind] = len(kinds)
			kinds = append(kinds, spans[i].Kind)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(kinds)))
	for _, k := range kinds {
		b = appendText(b, k)
	}
	var prev Span
	before := "" // the entry before prev's
	for i := range spans {
		s := &spans[i]
		flags := byte(0)
		sameRecord := i > 0 && s.Start == prev.Start && s.End == prev.End && s.Line == prev.Line && s.Digest == prev.Digest
		sameEntry := sameRecord && s.Entry == prev.Entry && s.Parent == prev.Parent && s.Time == prev.Time && s.Copy == prev.Copy
		if sameRecord {
			flags |= flagSameRecord
		}
		if sameEntry {
			flags |= flagSameEntry
		}
		for _, f := range []struct {
			on  bool
			bit byte
		}{{s.Off, flagOff}, {s.Copy, flagCopy}, {s.Time == evidence.NoTime, flagTimeless}, {s.Gone, flagGone}, {s.Hidden, flagHidden}} {
			if f.on {
				flags |= f.bit
			}
		}
		b = append(b, flags, roleCode[s.Role]|byte(s.Class)<<4)
		b = binary.AppendUvarint(b, uint64(index[s.Kind]))
		b = binary.AppendUvarint(b, uint64(s.Ordinal))
		b = binary.AppendUvarint(b, uint64(s.Project))
		b = binary.AppendUvarint(b, uint64(s.Size))
		if !sameRecord {
			b = binary.AppendVarint(b, s.Line-prev.Line)
			b = binary.AppendVarint(b, s.Start-prev.End)
			b = binary.AppendUvarint(b, uint64(s.End-s.Start))
			b = append(b, s.Digest[:]...)
		}
		if !sameEntry {
			if s.Time != evidence.NoTime {
				last := prev.Time
				if i == 0 || last == evidence.NoTime {
					last = 0
				}
				b = binary.AppendVarint(b, s.Time-last)
			}
			b = appendID(b, s.Entry, s)
			if i > 0 && prev.Entry != s.Entry {
				before = prev.Entry
			}
			switch s.Parent {
			case "":
				b = append(b, parentNone)
			case before:
				b = append(b, parentPrevious)
			default:
				b = append(b, parentOwn)
				b = appendID(b, s.Parent, nil)
			}
		}
		prev = *s
	}
	return b
}

// maxText bounds what a block's text unpacks to; more than that is damage.
const maxText = 16 << 20

func decodeSpans(b []byte, count int, yield func(i int, s *Span) bool) error {
	r := reader{b: b}
	if r.byte() != metaVersion {
		return errDamaged
	}
	n := r.uint()
	if n > uint64(len(b)) {
		return errDamaged
	}
	kinds := make([]string, 0, min(n, 16))
	for range n {
		kinds = append(kinds, r.text())
	}
	roles := evidence.Roles()
	var s Span
	before := ""
	for i := range count {
		flags, rc := r.byte(), r.byte()
		k := r.uint()
		if r.bad || int(rc&15) >= len(roles) || k >= uint64(len(kinds)) || i == 0 && flags&(flagSameEntry|flagSameRecord) != 0 {
			return errDamaged
		}
		lastEntry, lastTime := s.Entry, s.Time
		s.Role, s.Class, s.Kind = roles[rc&15], evidence.Class(rc>>4), kinds[k]
		s.Off, s.Copy, s.Gone = flags&flagOff != 0, flags&flagCopy != 0, flags&flagGone != 0
		s.Hidden = flags&flagHidden != 0
		s.Ordinal, s.Project, s.Size = int(r.uint()), int64(r.uint()), int(r.uint())
		if flags&flagSameRecord == 0 {
			s.Line += r.int()
			s.Start = s.End + r.int()
			s.End = s.Start + int64(r.uint())
			r.copy(s.Digest[:])
		}
		if flags&flagSameEntry == 0 {
			s.Time = evidence.NoTime
			if flags&flagTimeless == 0 {
				if lastTime == evidence.NoTime {
					lastTime = 0
				}
				s.Time = lastTime + r.int()
			}
			s.Entry = r.id(&s)
			if i > 0 && lastEntry != s.Entry {
				before = lastEntry
			}
			switch r.byte() {
			case parentNone:
				s.Parent = ""
			case parentPrevious:
				s.Parent = before
			case parentOwn:
				s.Parent = r.id(nil)
			default:
				return errDamaged
			}
		}
		if r.bad || s.Size < 0 || s.Size > maxText || s.Ordinal < 0 {
			return errDamaged
		}
		if !yield(i, &s) {
			return nil
		}
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendID writes an id in its shortest form. of is the span whose entry it is, or nil.
func appendID(b []byte, id string, of *Span) []byte {
	if raw, ok := packUUID(id); ok {
		return append(append(b, idUUID), raw[:]...)
	}
	if of != nil && id == lineID(of) {
		return append(b, idLine)
	}
	if len(id)%2 == 0 && len(id) >= 8 && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == "" {
		b = append(b, idHex, byte(len(id)/2))
		b, _ = hex.AppendDecode(b, []byte(id))
		return b
	}
	return appendText(append(b, idText), id)
}

func lineID(s *Span) string {
	return "line-" + strconv.FormatInt(s.Line, 10) + "-" + hex.EncodeToString(s.Digest[:8])
}

func packUUID(s string) (u [16]byte, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' || strings.ContainsAny(s, "ABCDEF") {
		return u, false
	}
	h := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	_, err := hex.Decode(u[:], []byte(h))
	return u, err == nil
}

func unpackUUID(u []byte) string {
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// A reader takes values off a packed block; after the first fault everything is zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *reader) copy(to []byte) { copy(to, r.take(len(to))) }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > math.MaxInt64 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) text() string { return string(r.take(int(min(r.uint(), math.MaxInt32)))) }

func (r *reader) id(of *Span) string {
	switch r.byte() {
	case idText:
		return r.text()
	case idUUID:
		if p := r.take(16); p != nil {
			return unpackUUID(p)
		}
	case idHex:
		return hex.EncodeToString(r.take(int(r.byte())))
	case idLine:
		if of != nil {
			return lineID(of)
		}
		r.bad = true
	default:
		r.bad = true
	}
	return ""
}
