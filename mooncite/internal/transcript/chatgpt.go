package transcript

import "localmcp/mooncite/internal/evidence"

var chatgptFormat = format{origin: evidence.ChatGPT}
