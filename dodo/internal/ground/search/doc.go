// Package search finds text and names in the files of a workspace.
//
// What it is: the operations search_code and glob_files over a guarded [workspace.Tree].
// A query becomes a pattern (pattern.go): the expression of package regexp, the needles that every
// match has in it (needle.go), and an automaton over bytes (automaton.go). Needles are looked for with the
// fastest instructions there are; without one, states of the automaton are walked; both only say
// which lines may match, and a line that they cannot be sure of is matched by package regexp (lines.go).
// Files are read and searched by several goroutines while the tree is walked (scan.go).
//
// What one may rely on: lines and columns are those that ripgrep finds on the same files,
// with the differences below, and those of package regexp always, which a fuzz target
// holds; no expression takes more than time in proportion to the text, and none that would
// is accepted; memory is bounded by a file for each goroutine and by what is shown; answers
// come in the order of paths, whatever the order of the work; a search that takes too long
// ends with TIMEOUT, also within one line; a cursor serves once.
//
// Text is searched line by line: ^, $, \A and \z are the ends of a line, nothing takes a line feed.
// LF and CRLF end a line, also in one file, and neither is part of it, as with ripgrep's --crlf; a CR
// elsewhere is a character like others, which --crlf takes for an end too. A line counts once. A line is numbered from 1, a column from
// 1 in units of UTF-16, also where the file has another encoding; a mark at the start of a file is no part of it,
// and UTF-16 with a mark is searched as the text it is. A file with a NUL is no text. Other than ripgrep,
// \w, \d, \s and \b know ASCII only, an expression's dot takes a byte that is no UTF-8, and a file whose
// first NUL comes late is left out whole where ripgrep shows what it found before it.
//
// What it deliberately does not do: it runs no ripgrep. Programs run through the sandbox
// alone, which is not there yet, so the backend is "builtin" whatever searchBackend says; nothing is
// lost by it but a choice. It keeps no index, judges no relevance, and replaces nothing.
package search
