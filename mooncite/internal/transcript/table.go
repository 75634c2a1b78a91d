package transcript

import "localmcp/mooncite/internal/evidence"

// A format is one origin's row in the table.
type format struct {
	origin evidence.Origin
	// shape says whether the file at rel (below the root, "/" between parts) is a
	// transcript and how it is read.
	shape func(rel string) Shape
	// descend says whether discovery reads the directory at rel.
	descend func(rel string) bool
	// open gives the parser of a file, behind state when state is not nil.
	open func(f File, state []byte) (Parser, error)
	// decode gives the entries of one record, without session and project and
	// without regard to what stands before or behind it.
	decode func(f File, r *Record) ([]Entry, error)
}

// formats is the one table of origins. Conformance and fuzz tests run over it.
var formats = []*format{&piFormat, &ompFormat, &claudeFormat, &codexFormat, &chatgptFormat}

func lookup(o evidence.Origin) *format {
	for _, f := range formats {
		if f.origin == o {
			return f
		}
	}
	return nil
}

// ShapeOf says whether and how a file is read, by its place below the root.
func ShapeOf(f File) Shape { return lookup(f.Origin).shape(f.Rel) }

// Descend says whether a directory below a root can hold transcripts.
func Descend(o evidence.Origin, rel string) bool { return lookup(o).descend(rel) }

// New returns the parser of a file; state, when not nil, is a Result.State of the
// same file's earlier parser.
func New(f File, state []byte) (Parser, error) { return lookup(f.Origin).open(f, state) }

// Decode gives the entries of one record from its bytes alone: the same ids and
// the same spans, in the same order, as the parser emitted for it. r.Line matters
// only where an entry id is made of it.
func Decode(f File, r *Record) ([]Entry, error) { return lookup(f.Origin).decode(f, r) }
