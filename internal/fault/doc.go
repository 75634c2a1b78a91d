// Package fault is the one error type of both programs.
//
// What it is: an error with a code for programs, a sentence for people, a hint
// that says what to do next, and a cause that only the log sees.
//
// What one may rely on: [Error] keeps its code through any wrapping, so
// errors.Is(err, someCode) holds; Msg and Hint are safe to show to a stranger
// (no private path, no secret, no SQL); [From] never returns nil for a non-nil
// error, and an error nobody gave a code becomes [Internal] with its text hidden.
//
// What it deliberately does not do: it keeps no list of codes (each product has
// its own closed list), it does not log, and it does not carry outcomes; an
// answer such as "no match" is a value, not a fault.
package fault
