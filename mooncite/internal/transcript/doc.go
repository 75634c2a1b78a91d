// Package transcript turns the bytes of a history file into entries and spans.
//
// What it is: pure parsers, one file per origin, behind one table ([For]).
// Two layers: [Decode] is a pure function of one record's bytes, so that inspect
// can derive a citation's text from the present bytes alone; a [Parser] adds what
// needs order: session, project, branches, copies, duplicates.
//
// What one may rely on: every entry has the byte range and digest of the record it
// came from; damaged input costs at most the record it stands in, and a whole
// record inside a spliced line is recovered with its own range (decision 2.1);
// unknown record types are counted, never errors; no input makes a parser panic or
// take memory beyond a small multiple of the largest record; a parser stopped
// after any record and resumed from its state gives the same entries, branches
// included, as one that read the file in one go, or says [ErrRestart], or asks for the
// branches of one reading ([Result.Relabel]).
//
// What it deliberately does not do: it opens no file, it never writes, it does not
// rank, fold or mask, and it trusts no field to be present.
package transcript
