// Package state keeps what dodo must not forget, in state.db of the installation
// directory.
//
// What it is: one SQLite file with one list of migrations, and the questions and changes
// of the tables that no other package owns: workspaces and how far each is trusted, what
// the owner granted to clients, approvals, idempotency keys with their receipts, the
// audit, notes, and registered projects.
//
// What one may rely on: several processes may use one installation at once and lose
// nothing; what grants authority, reserves a key or keeps a receipt is on the disk before
// the call returns; an approval is used at most once, and only in the epoch that asked
// for it; a directory that was put in another's place inherits neither trust nor clients;
// audit rows are chained, so that a changed, lost or added row shows, and the chain holds
// after a crash; what cannot be read grants nothing; every fault has a code of contract,
// and a file that is damaged, foreign or newer is left as it is; nothing is read or written
// once the file is not at its path any more.
//
// What it deliberately does not do: it decides nothing (package policy does), asks nobody,
// looks at no file of a workspace (only whether a registered root is still there), knows no
// configuration, and holds no queries for plans, changesets and the journal, whose rows package
// change owns, nor for jobs, which package job owns.
package state
