// Package host knows which workspaces are open.
//
// What it is: the active workspace of this process, and the other registered projects that
// calls were sent to (targetProjectId), each with its own epoch, services and turn. It
// finds the workspace of a call for the gate (spec dodo-behaviour 1.13).
//
// What one may rely on: a workspace is not closed while a call is in it; a project that is
// not ready, or that the caller may not use, is not opened; at most Most projects are open
// beside the active workspace, and one that nobody uses makes room; who asks for a project
// that is just being opened waits for it.
//
// What it deliberately does not do: it does not know how a workspace is opened (main
// supplies that), and it decides nothing about authority.
package host
