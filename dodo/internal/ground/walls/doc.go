// Package walls is the first process of a sandbox: it builds the walls that a [Plan]
// describes, runs the command in them and stays as its init.
//
// What it is: a program within every program that imports it. Started by package sandbox
// with the name [HelperName] and no argument, the package's init does that work and ends
// the process; under any other name it does nothing. It stands before everything that it
// does not import itself: Go initialises packages in the order of their paths, as soon as
// what they import is there, and most of a start of dodo is what databases, protocols and
// tables of texts do before main (ADR 0017). That is why its imports are few, and kept so
// by a test.
//
// What one may rely on: the command runs with every wall of the plan around it, or the
// process says which step failed and ends with the status [ExitFailed]. When the socket to
// the server ends, it ends, and the kernel everything in its namespace.
//
// What it deliberately does not do: it decides nothing about what a command may have;
// package sandbox makes the plan.
package walls
