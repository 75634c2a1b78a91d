package transcript

import "localmcp/mooncite/internal/evidence"

var piFormat = format{origin: evidence.Pi}
