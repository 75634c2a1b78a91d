// Package text reads files as text: what kind of bytes they are, and windows of them.
//
// What it is: [Detect] tells text from binary and names the kind; [Read] gives a window
// of a file (lines, the last lines, or bytes from an offset) from anything that can be
// read at offsets; [Visible] shows what is not seen; [Screen] makes text of what a command
// says to a terminal.
//
// What one may rely on: a window takes memory of its own bound and no more, however large
// the file and its lines are; the last lines and byte offsets are reached by seeking, only
// a first line deep in a file is counted up to; a window is cut between characters and
// says where it begins, where it ends and where to go on; bytes that are not text in the
// encoding are refused with UNSUPPORTED_ENCODING and never shown as something else.
//
// Content is exact: what a caller reads is what an edit has to match, so control and
// directional characters stay as they are in it. They cannot break out of a JSON string;
// [Window.Hidden] counts them, so that whoever answers can warn, and [Visible] makes them
// seen where text is shown to people or quoted in prose.
//
// What it deliberately does not do: it opens no file, it guesses no language, it writes
// nothing, and without being told it takes no bytes for anything but UTF-8 or UTF-16 with
// its mark. A lone CR ends no line.
package text
