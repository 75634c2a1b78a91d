// Package memory is learned memory: what agents have written down on purpose, apart
// from the evidence it rests on.
//
// What it is: a database of its own with memories, their revisions, the evidence each
// revision is anchored in, how revisions relate, and skills that agents propose; four
// operations over it; and the owner's switch, which is off until it is set.
//
// What one may rely on: a revision never changes; every change happens in one
// transaction that no other writer can come between, with the caller's guards checked
// inside it; what is answered as done is on the disk; an interpretation is never shown
// as evidence, and each says what it rests on: verified evidence, other memories, what
// was going on, or nothing; a memory whose own evidence changed, is gone or was
// withdrawn is not recalled unless asked for; a database that is damaged, newer or
// another program's is refused unharmed. Its faults never reach evidence: recall,
// inspect and status work without it.
//
// What it deliberately does not do: it extracts, merges, decays and ranks nothing by
// itself, it installs no skill, it keeps no text of a history, and it opens no source:
// an [Evidence] resolves and proves anchors.
package memory
