package transcript

import (
	"errors"

	"localmcp/mooncite/internal/evidence"
)

// Record is one physical record: a line of a JSONL file, a whole record found
// inside a damaged line, or one conversation of a ChatGPT export.
type Record struct {
	Line   int64 // physical line its first byte is on, from 1
	Start  int64 // offset of its first byte in the file (of the unpacked text for .zst)
	End    int64 // offset after its last byte; the line end is not part of it
	Bytes  []byte
	Digest evidence.Digest // SHA-256 of Bytes
	Parts  int64           // what it counts for in Counts.Records; set for documents

	checked bool // Scan found Bytes to be one whole JSON object
}

// Entry is one turn, or part of one, that can be cited.
type Entry struct {
	ID      string // raw entry id; an identifier
	Parent  string // raw entry id of the parent, or ""
	Session string // raw session id it is cited under; set by the parser
	Project string // project identity, see [ProjectID]; set by the parser
	Kind    string // source kind of its spans unless a span says otherwise
	Time    int64  // milliseconds since 1970 UTC, or evidence.NoTime
	Copy    bool   // a copy of an entry another session holds (fork, resume)
	Off     bool   // known at once to be off the current branch (see Result.OffBranch)
	Spans   []Span // in ordinal order: spans[i] has ordinal i unless it is hidden
}

// Span is one piece of text of an entry, contiguous in one decoded value of the
// record.
type Span struct {
	Text  string
	Role  evidence.Role
	Kind  string // "" means the entry's kind
	Class evidence.Class
	// Hidden text is searched, so that "not found" is true, but neither kept nor
	// cited: the middle of a long tool result. Hidden spans come last and have no
	// ordinal. One without text stands for a part that is not searched at all.
	Hidden bool
}

// File is what is known of a file before its first byte is read.
type File struct {
	Origin evidence.Origin
	Rel    string // path below the root, "/" between parts
}

// Counts adds up what a parser met, as status reports it.
type Counts struct {
	Lines     int64            // physical lines; the caller takes it from [Scan]'s position, parsers leave it 0
	Records   int64            // JSON objects
	Eligible  int64            // records that gave or could give an entry
	Skipped   int64            // records or lines passed over for a fault
	Malformed int64            // not JSON, not an object, or without acceptable identity
	Oversized int64            // longer than evidence.MaxRecordBytes
	Errors    int64            // malformed or duplicate; oversized ones are not errors
	Unknown   map[string]int64 // record types nobody knows, at most 64 names
}

// Info describes the whole file as far as it was read.
type Info struct {
	Session   string // raw session id of the file; "" if it has none yet
	Project   string // project identity
	Subagent  bool   // the transcript of a sub-agent
	Parent    string // raw session id this one was forked, cloned or spawned from, or ""
	Title     string // the newest title the file gives itself, or ""
	LastEntry string // leaf: the last accepted entry
	// CompactionLine is the line of the last compaction record, or 0.
	CompactionLine int64
}

// ErrRestart says that a file cannot be continued from the saved state and must be
// read from its beginning: what was appended changes entries already given out.
var ErrRestart = errors.New("transcript must be read from its beginning")

// ErrUnsupported says that a file's shape is none of the origin's known ones.
type ErrUnsupported struct{ Reason string }

// Error returns the reason.
func (e *ErrUnsupported) Error() string { return e.Reason }

// A Parser reads the records of one file in order.
type Parser interface {
	// Record takes the next record and gives zero or more entries to emit. The
	// entry and its spans may be kept by emit; the Record and its bytes may be kept by
	// neither. Errors end the file: *ErrUnsupported, ErrRestart, or emit's own.
	Record(r *Record, emit func(*Record, *Entry) error) error
	// Damaged tells of n bytes at a line that hold no record (not JSON, oversized).
	Damaged(line, start, n int64, oversized bool)
	// Finish emits what was held back (the end of the file as it is now) and
	// returns the branch of every entry emitted since New: OffBranch is nil when
	// all of them are on the current branch.
	Finish(emit func(*Record, *Entry) error) (Result, error)
}

// Result is what only the end of a file can tell.
type Result struct {
	Info   Info
	Counts Counts // since New, not including what came before a resumed state
	// OffBranch has a bit per emitted entry (in order of emission): set when the
	// entry is not on the path from the leaf to the root.
	OffBranch Bits
	// Relabel says that entries emitted before the resumed state changed their
	// branch: the caller reads the file anew and takes labels, Info and State from
	// that reading.
	Relabel bool
	// State resumes a parser behind the last record read. nil: this file can only
	// be read from its beginning (ChatGPT exports, documents).
	State []byte
}

// Bits is a set of small numbers.
type Bits []uint64

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 == 1 }

// Set puts i into the set.
func (b *Bits) Set(i int) {
	for i>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}
