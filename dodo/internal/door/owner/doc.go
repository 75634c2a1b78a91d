// Package owner is the private door of the owner's command line to running servers.
//
// What it is: a server that listens on sockets in the installation directory and runs
// commands of a table, and the client that finds every live server of an installation and
// calls it (spec dodo-behaviour 3.2, 3.3).
//
// What one may rely on: both ends prove that they know a token that only the owner can read
// before anything privileged is said, and the token itself is never sent; a socket or a
// descriptor that another user could have put there, or that names another place, gets
// nothing; a peer of another user, one that cannot be seen in /proc, and one that descends
// from a running server (a job that a caller started) is refused; each message holds for one
// connection, so that a recorded one is worth nothing; frames, connections and waiting are
// bounded; a socket that a killed server left is replaced.
//
// What it deliberately does not do: it knows no command but status and stop, decides nothing
// for the owner, signals and kills no process, and is no defence against other programs of
// the owner, which can read what the owner can.
package owner
