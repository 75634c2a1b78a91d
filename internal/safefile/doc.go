// Package safefile opens, reads and replaces files by descriptor.
//
// What it is: a [Root] is an open directory; everything below it is reached by
// names relative to that descriptor, so that nobody can swap a directory for a
// link between a check and the use of what was checked. A [Dir] is one directory whose
// entries are listed, read and changed by single names.
//
// What one may rely on: below a Root no symbolic link is ever followed (but by
// [Root.Peek], which opens nothing) and no ".." is accepted; only regular files are opened, and a FIFO, a socket or a device is
// refused at once and never waited for; reading leaves access times alone wherever
// the system lets this user ask for that; names are bytes, so line feeds and
// invalid UTF-8 are ordinary; [Root.WriteFileAtomic] shows a reader the old content
// or the new, whole, also after a crash, and [Root.Exchange] one directory or the other.
//
// What it deliberately does not do: it judges no owner and no mode (package privdir
// does), it locks nothing, it does not follow links for convenience, and it has no
// adapter for systems other than Linux: there everything answers [NotSupported].
package safefile
