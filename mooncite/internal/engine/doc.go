// Package engine answers: it keeps the index fresh and gives recall, inspect and
// status their outcomes.
//
// What it is: the one place where roots, parsers and the index meet. It pours
// entries from source through transcript into index, ranks what the index finds, and
// re-reads source bytes before it calls a citation verified.
//
// What one may rely on: every answer says what was searched and whether it is
// conclusive; an answer is conclusive only when nothing that could match was unread,
// skipped or still being read; a fault of one file never takes another's text away;
// inspect derives a citation's text from the present bytes, never from the index;
// no answer holds a full path, and transcript text only where text was asked for.
//
// What it deliberately does not do: it judges no evidence, repairs no source, speaks
// no protocol and prints nothing.
package engine
