// Package privdir keeps directories and files private to one user.
//
// What it is: it creates and checks the directories programs keep their state in,
// reads configuration files, and locks by flock.
//
// What one may rely on: a directory that [Create] or [Open] returned is the user's
// own, closed to everyone else, reached without a symbolic link, and no directory
// above it lets another user swap it; a configuration directory or file is refused
// only when another user could change it, never because others can read it; each
// refusal says in one sentence what is wrong and in its hint what to do, without a
// path ([At] has it, for the owner); a [Held] lock ends with the process that holds
// it, however it ends.
//
// What it deliberately does not do: it repairs no mode and no owner behind the
// user's back, it writes no pid file, and it knows no product's file names.
package privdir
