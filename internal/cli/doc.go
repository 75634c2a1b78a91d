// Package cli is what the command lines of both programs have in common.
//
// What it is: the streams a command talks to, the printing of data and of failures,
// questions, the progress bar, and [Run], which executes a tree of cobra commands and gives the
// exit status.
//
// What one may rely on: standard output carries data only, and what could not be
// written to it is a failure; a failure is one sentence on standard error,
// "program: sentence", with the hint indented below; a wrong command, flag or argument
// is the usage status, also where help was asked for; an interrupt ends a command with
// status 130, also one that waits for an answer; every help text ends with the exit
// statuses; progress is shown on a terminal only, goes away when the work is done,
// and stays silent for work that is quick; JSON has two spaces and sorted maps, the
// same as every other door ([op.Encode]).
//
// What it deliberately does not do: it never exits the process, reads no environment
// except in [Std], keeps no table of statuses (each product has its own), and has no
// colours of its own.
package cli
