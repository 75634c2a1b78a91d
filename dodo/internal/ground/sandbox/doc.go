// Package sandbox runs programs inside walls that the kernel holds.
//
// What it is: the only place of dodo that starts processes. A [Box] is what this machine
// can do; a [Place] is one workspace in it; [Place.Start] runs one command. The walls are
// built by dodo's own program, which starts itself again as the first process of a fresh
// set of namespaces (sandbox-desktop 6, ADR 0017).
//
// What one may rely on: a [Process] says which [Isolation] it has, and it is never less
// than what [Mode] asked for. With full and bwrap a command sees an allow-list of the file
// system, its workspace without the secret paths, its own /tmp, processes, shared memory
// and loopback; no capability, no new privileges, Landlock and a system call filter hold
// for it and everything it starts, for good. Any step that fails keeps the command from
// running. When a Process has ended nothing that it started is left; it ends with the
// server, however that ends.
//
// What it deliberately does not do: it decides nothing about permission, keeps no output,
// knows no shell and no git, and bounds neither time nor output: package job does. It does
// not protect against faults of the kernel. Sockets that others serve within the workspace
// can be reached, the server's groups stay with its commands, and there is no bound on what
// it writes; all its processes together are bounded only in a group of their own, and in
// number by the namespace from Linux 6.14 on. Without namespaces (Reduced) modes
// and times of the user's other files can be changed, and what forks faster than it can be
// found may outlive its command.
package sandbox
