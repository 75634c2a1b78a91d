package transcript

import "localmcp/mooncite/internal/evidence"

var ompFormat = format{origin: evidence.OMP}
