package transcript

import "localmcp/mooncite/internal/evidence"

var claudeFormat = format{origin: evidence.Claude}
