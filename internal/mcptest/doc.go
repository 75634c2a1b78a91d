// Package mcptest helps tests talk to a real MCP server process.
//
// What it is: a peer that speaks raw frames to a child process ([Start]), and the
// command line of the MCP inspector ([Inspector]), an independent client; the four
// clients that people use ([Clients]); and a page of documentation of tools ([Describe]).
//
// What one may rely on: a peer never hangs a test (every wait has a limit and fails
// with the child's stderr), checks that every line of the child's stdout is one JSON
// object, and ends the child with the test. Inspector and clients are installed once,
// from exact versions, into a cache outside the repository, and only when the tests were
// asked to use the network; otherwise the test is skipped with the reason.
//
// What it deliberately does not do: it knows no protocol beyond JSON-RPC, and
// nothing but tests imports it.
package mcptest
