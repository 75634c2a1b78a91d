// Command dodo lets AI clients work on a workspace that its owner chose.
//
// What it is: the program: its commands (cmd_*.go), and the building of everything from
// the configuration (wire.go).
//
// What one may rely on: data goes to standard output and everything else to standard error; what
// the owner changes by a command holds at the next call of every running server.
//
// What it deliberately does not do: nothing here has a rule of its own; rules stand in the
// packages below.
package main
