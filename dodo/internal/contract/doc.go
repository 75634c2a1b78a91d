// Package contract holds dodo's words: error codes, scopes, trust, classes of action,
// ids, digests, limits, the envelope of every answer, and what an operation is.
//
// What it is: values and pure functions that every other room of dodo speaks in.
//
// What one may rely on: names, codes and bounds are those that clients of dodo know and
// are only ever added to; an unknown scope, trust or access mode is never more than the
// least of its kind; an id cannot be guessed; a digest of a structured value does not
// depend on the order of its members.
//
// What it deliberately does not do: it opens no file, decides nothing about permission
// (package policy does) and knows nothing of SQLite or MCP.
package contract
