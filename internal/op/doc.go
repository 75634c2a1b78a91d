// Package op is an operation as a Go value: a name, hints, two schemas and a function.
//
// What it is: the shape every tool of both programs has. A door (MCP, a command
// line, a schedule) turns what it hears into a [Call] and hands it to a [Runner];
// a [Set] is the plainest Runner.
//
// What one may rely on: schemas are derived once, in [New], from the Go types of
// the input and the output, and a type or tag that cannot be said in the portable
// subset of JSON Schema panics there. An input schema is a closed object whose
// properties have exactly one type each. What an input schema says is enforced by
// [Op.Bind]: unknown, missing, repeated, mistyped and out-of-bounds arguments are a
// fault with the code [InvalidArgument] that names the argument and what it
// accepts; so is text that is not valid Unicode, which decoding would change. An optional argument that is null counts as absent. An output schema is
// an open object without required root members, so that it also fits a failure.
//
// What it deliberately does not do: it knows no protocol and imports no SDK, it
// decides nothing about permission, it does not log, and [Set] itself does not recover from a panic; [Recover] does.
package op
