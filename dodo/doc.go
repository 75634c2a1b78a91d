// Command dodo lets AI clients work on a workspace that its owner chose.
//
// What it is: the program: its commands (cmd_*.go), and the building of everything from
// the configuration (wire.go).
//
// What it deliberately does not do: nothing here has a rule of its own; rules stand in the
// packages below.
package main
