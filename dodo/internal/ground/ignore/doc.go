// Package ignore reads git ignore rules and path globs, and tells which paths they match.
//
// What it is: [Rules] are the lines of one file such as .gitignore, and [Glob] is a
// pattern a caller wants files by.
//
// What one may rely on: rules mean what git means by them (gitignore(5), and where that
// page is silent, what git check-ignore does): the last rule that matches wins, a rule
// without a slash is about names, a file below an ignored directory stays ignored, and a
// rule that git can never match is never matched here. A match takes time that is bounded by the
// size of path and pattern, whatever the pattern. Paths are bytes, separated by slashes, relative to the
// root of the workspace.
//
// What it deliberately does not do: it opens no file, knows no rule of its own, and does
// not read core.ignoreCase: without folding asked for, case counts.
package ignore
