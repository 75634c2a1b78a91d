// Package connect registers dodo with AI clients on this machine.
//
// What it is: for Claude Code and Codex, the client's own command that adds a server; for
// Cursor, which has none, an entry in its mcp.json.
//
// What one may rely on: what will be done can be shown before it is done; an entry of the
// same name that is there already is never replaced; in Cursor's file every byte that was
// there stays, and the file is replaced in one step or not at all; client programs are run
// without a shell, for a bounded time, and outside any project.
//
// What it deliberately does not do: it asks nobody (the command line does), removes nothing,
// installs no client, and reads no client's entries beyond the one name.
package connect
