package transcript

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
