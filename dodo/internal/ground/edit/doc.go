// Package edit changes the bytes of one file: exact find and replace, and unified diffs.
//
// What it is: pure functions from the bytes before to the bytes after. [Apply] does
// ordered find and replace, [ReplaceAll] one replacement of many places, [ParsePatch]
// and [FilePatch.Apply] apply a unified diff, [Diff] shows what changed.
//
// What one may rely on: bytes outside the places that an edit names never change, nor do
// the encoding, the byte order mark and the last line's missing line break; nothing is
// matched by likeness: a find text, and the old lines of a hunk, must be there as they
// are. Two things are forgiven because they cannot mean anything else: LF in a text meets
// CRLF in a file, and new lines then end as the lines do that they replace or stand
// beside; and a hunk whose lines are at exactly one other place is applied there, and the
// answer says so. UTF-8 and UTF-16 are edited, everything else is refused with
// UNSUPPORTED_ENCODING. How large a result may be is checked before it is made. A refusal
// says in its detail where and why: the lines of all matches, or the nearest place and
// what differs there. Time grows with the size of file and text, whatever they hold.
//
// What it deliberately does not do: it opens no file and knows no path rules; it does no
// fuzzy write, ever; it follows no rename, mode change or binary patch; it never writes
// another encoding than it found.
package edit
