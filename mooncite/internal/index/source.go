package index

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"localmcp/internal/safefile"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/transcript"
)

// A Source is one file as the index knows it.
type Source struct {
	ID       int64
	Origin   evidence.Origin
	Root     string // root digest
	Rel      string
	Identity safefile.Identity // of the file last looked at
	SeenNS   int64             // when Identity was taken
	At       transcript.Position
	Prefix   [sha256.Size]byte
	Chained  bool // grew by trusted appends since it was last read whole
	Present  bool
	Fault    string // reason why the present file is not what is projected, or ""
	Spans    int64
	Info     transcript.Info
	Counts   Counts
	State    []byte // of the parser; nil when it has to start anew
}

// Counts are a source's counters as status adds them up.
type Counts struct {
	Lines     int64            `json:"lines,omitempty"`
	Records   int64            `json:"records,omitempty"`
	Eligible  int64            `json:"eligible,omitempty"`
	Skipped   int64            `json:"skipped,omitempty"`
	Malformed int64            `json:"malformed,omitempty"`
	Oversized int64            `json:"oversized,omitempty"`
	Errors    int64            `json:"errors,omitempty"`
	Unknown   map[string]int64 `json:"unknown,omitempty"`
}

// maxUnknown bounds the names of unknown record types kept for one source.
const maxUnknown = 64

// Add adds what a parser counted.
func (c *Counts) Add(t transcript.Counts) {
	c.Lines += t.Lines
	c.Records += t.Records
	c.Eligible += t.Eligible
	c.Skipped += t.Skipped
	c.Malformed += t.Malformed
	c.Oversized += t.Oversized
	c.Errors += t.Errors
	for name, n := range t.Unknown {
		if c.Unknown == nil {
			c.Unknown = map[string]int64{}
		}
		if _, ok := c.Unknown[name]; ok || len(c.Unknown) < maxUnknown {
			c.Unknown[name] += n
		}
	}
}

// StoredPath is the source's name outside its root.
func (s *Source) StoredPath() string { return evidence.StoredPath(s.Origin, s.Root, s.Rel) }

// File is the source as parsers know it.
func (s *Source) File() transcript.File { return transcript.File{Origin: s.Origin, Rel: s.Rel} }

// Generation is a digest of what is projected of the source: it changes when its
// admitted bytes do.
func (s *Source) Generation() string {
	h := sha256.New()
	h.Write([]byte("source-generation-v1\x00" + s.StoredPath() + "\x00" + strconv.FormatInt(s.At.Offset, 10) + "\x00" + strconv.FormatInt(s.Spans, 10) + "\x00"))
	h.Write(s.Prefix[:])
	return hex.EncodeToString(h.Sum(nil))
}

// A Unit is what is replaced as a whole: a JSONL file or one conversation of an
// export. Its spans' byte ranges and lines count from Start and Line.
type Unit struct {
	ID      int64
	Source  int64
	Session string // raw session id
	Start   int64
	Size    int64
	Line    int64
	Digest  [sha256.Size]byte // of a conversation's bytes; zero for files
	Spans   int64
	// Records and Eligible are a conversation's part in its source's counts.
	Records, Eligible int64
}
