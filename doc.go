// Package house is the root of the module: two programs on one foundation.
//
// mooncite (cited recall over past conversations with machines) and dodo (an owner's
// workspace behind MCP) stand in folders of their own, each with packages that only
// it can import. What both need is in internal: faults, files by descriptor, private
// directories, SQLite, and the way operations are described, run and shown.
//
// What one may rely on: layers.txt lists every package and its floor, and the test
// beside it fails when an import goes up or sideways, when a sharp tool such as the
// SQLite driver or os/exec is used outside its one place, or when a package does not
// say what it is.
//
// What it deliberately does not do: it has no code; start reading at
// mooncite/main.go or dodo/main.go.
package house
