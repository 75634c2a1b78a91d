package transcript

import (
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// ompFormat: <project>/<name>.jsonl, and below <project>/<name>/ the transcripts of
// the sub-agents that session started. Everything inside is read as Pi's.
var ompFormat = format{
	origin: evidence.OMP,
	shape: func(rel string) Shape {
		if strings.HasSuffix(rel, ".jsonl") && strings.Contains(rel, "/") {
			return Lines
		}
		return None
	},
	descend: func(rel string) bool { return depth(rel) <= 16 },
	open:    openPi,
	decode:  decodePi,
}
