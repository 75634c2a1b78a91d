// Package notes keeps what one session wants to tell the next: a list of things to do, and
// notes of handing over.
//
// What it is: the operations todo_write, todo_read, handoff_write and handoff_read over
// the tables of package state.
//
// What one may rely on: a workspace has one list, replaced whole; handoffs are only added;
// what is read back is marked as an earlier session's words; keys of well-known shapes are
// masked before a note is kept.
//
// What it deliberately does not do: it interprets nothing, and notes are no memory: they
// are not searched and rest on no evidence.
package notes
