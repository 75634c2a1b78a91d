// Package mcpserve shows operations as an MCP server.
//
// What it is: the adapter between an [op.Runner] and the protocol, and the only
// package that imports the SDK. [New] gives a server without a transport; [Server.Serve]
// runs one session over newline-delimited JSON, [Server.ServeStdio] over the
// process's own streams; [Server.Resume] goes on with one that another process began.
//
// What one may rely on: both eras are spoken on one pipe (server/discover and every
// initialize revision, in any order, twice if need be); nothing a client sends ends
// the session except the end of its input; a broken or oversized line is answered
// and skipped; requests run beside each other, tool calls at most MaxCalls at once;
// a panic below is contained; a cancelled request is cancelled and not answered, and its
// context's cause is [op.ErrWithdrawn]; end of input, a signal or a dead parent end Serve within two
// seconds even when a handler ignores its context, and calls that end when they are told so
// ([op.ErrEnding]) are answered before. A failed call is a tool result whose text begins with
// the fault's code (or, for arguments, with the sentence the protocol's users
// expect) and whose structured content has code, message and hint. An answer longer
// than MaxReply that is an [op.Fitter] is cut and its whole kept for ten minutes as a
// resource. Where a session passes from one process to the next, every request is
// answered once, by one of them, and nothing the client sent is lost.
//
// What it deliberately does not do: it decides nothing about permission, keeps no
// state between calls except those whole answers, offers no prompts, sampling,
// logging or list changes, and does not exit the process.
package mcpserve
