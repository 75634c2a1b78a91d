// Package change writes files: plans, their journaled application, and taking them back.
//
// What it is: the one way by which dodo changes a workspace. An operation becomes a [Plan],
// what every file is and will be; a plan is applied whole by a journal in the installation's
// database; what was applied is in the history and can be rolled back, and a rollback too.
//
// What one may rely on: bytes outside an edit do not change, nor do a replaced file's mode,
// owner and attributes; a change of several files is made in all of them or in none; the
// journal with a backup of every byte that goes is on the disk before the first file is
// touched; a file is replaced by swapping names and looking at what was swapped out, so that
// what another program wrote in between is put back and never lost; a process that dies on
// the way leaves files that are each as before or as after, and the next one that takes the
// workspace's turn completes the change or takes it back; what it cannot tell it leaves as it
// is and blocks this workspace's changes until the owner decides ([Service.Recover]). A
// rollback touches only what the journal says was written, and only while it is still so.
//
// What it deliberately does not do: it asks nobody for permission and knows no idempotency
// key (the gate does both), matches nothing approximately, follows no link, moves no
// directory, and keeps no backup for ever: after 7 days, or above 1 GiB, the oldest go.
package change
