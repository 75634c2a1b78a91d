// Package evidence holds mooncite's words: origins, roles, spans, citation
// identity, outcomes and error codes.
//
// What it is: values and pure functions every other room of mooncite speaks in.
//
// What one may rely on: the digests, ids and URIs made here are the same for the
// same source path, session and entry on every machine and in every version, and
// are those the earlier program made (decision 2.7), so old citations stay valid.
//
// What it deliberately does not do: it opens no file, parses no transcript and
// knows nothing of SQLite or MCP.
package evidence
