// Package install puts mooncite on a machine and into its four clients, and takes it out.
//
// What it is: the installation (a directory of its own below the data home, with the
// program, a plugin for Pi and OMP and the skill), the launcher on the user's path, and
// the registrations with Pi, OMP, Codex and Claude Code, made and removed by the clients'
// own commands.
//
// What one may rely on: what is in force changes in one step, so a crash leaves the
// version before or the one after, and the next call ends what was begun or takes it back;
// nothing that mooncite did not make is replaced or removed, in the installation, on the
// path and in a client; a registration counts as exact only when it starts this very
// program in this very way; the files of the clients are written by the clients alone,
// but for what Codex and Pi take away from entries of others, which is put back.
//
// What it deliberately does not do: it opens no history and no index, it downloads
// nothing, and it neither installs nor updates a client. It runs client programs, and is
// therefore never called by a process that reads history.
package install
