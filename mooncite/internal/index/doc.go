// Package index is the projection of history into SQLite and FTS5.
//
// What it is: three things beside each other in one file: sources (what was read
// and how far), blocks (runs of spans: their metadata and their text, compressed)
// and words (a contentless FTS5 table over the tokens of [lexis]). A rebuild makes
// a new file; a small pointer file names the one in force.
//
// What one may rely on: a publication is one transaction and every source in it is
// whole; readers see the last good state while a writer works, and never wait for
// it; kill -9 at any moment leaves the last good state; document numbers grow and
// are never given twice within one file. One writer at a time, by a file lock that
// dies with its process.
//
// What it deliberately does not do: it reads no history and parses none (the engine
// pours entries in), it decides no outcome and no rank, and it is never the proof of
// a citation: it only says where to look.
package index
