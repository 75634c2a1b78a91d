package transcript

import "localmcp/mooncite/internal/evidence"

var codexFormat = format{origin: evidence.Codex}
