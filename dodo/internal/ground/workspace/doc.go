// Package workspace is the one way to the files of a workspace.
//
// What it is: a [Tree] is a directory the owner opened to callers. A [Path] names what is in
// it, by the rules of spec dodo-behaviour 4.1; the tree opens, reads, lists, walks and
// changes entries by descriptor, never by a path that could lead elsewhere meanwhile. The
// reading operations that need nothing more live here too (op_*.go).
//
// What one may rely on: no link is followed, at the end or on the way, also while others
// swap names; only regular files with one name are opened, and a FIFO, a socket or a device
// is refused by its type without being opened; what is secret or protected is refused by its
// name, whether it exists or not, in any case of letters, and is never listed; a directory
// put in the place of the root is noticed; a read is whole and of one state, or an error;
// memory is bounded by the limit asked for, however large a file says it is.
//
// What it deliberately does not do: it knows no caller and asks nobody for permission (the
// gate does), it keeps no journal (package change does, on the primitives of [Dir]), and it
// runs nothing.
package workspace
