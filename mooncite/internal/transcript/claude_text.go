package transcript

import (
	"strings"

	"localmcp/mooncite/internal/evidence"
)

// A part is a piece of a text in the user's chair, with who really speaks in it.
type part struct {
	text  string
	role  evidence.Role
	kind  string
	class evidence.Class
}

// wrappers are the elements the program puts into the user's chair. A text made of
// nothing else is machine text; a person may quote any of them.
var wrappers = map[string]bool{
	"command-name": true, "command-message": true, "command-args": true, "command-contents": true,
	"local-command-caveat": true, "local-command-stdout": true, "local-command-stderr": true,
	"bash-input": true, "bash-stdout": true, "bash-stderr": true,
	"system-reminder": true, "task-notification": true, "teammate-message": true, "user-memory-input": true,
	"user-prompt-submit-hook": true, "ide_opened_file": true, "ide_selection": true, "ide_diagnostics": true,
}

// interruptions stand where a person stopped the model; nobody wrote them.
var interruptions = map[string]bool{
	"[Request interrupted by user]":              true,
	"[Request interrupted by user for tool use]": true,
}

// addClaudeText adds a text of the user's chair. Its first part keeps the ordinal
// the whole text had in the earlier program.
func addClaudeText(s *spanner, text string) {
	for i, p := range claudeParts(text) {
		switch {
		case i > 0:
			s.extra(p.text, p.role, p.kind, p.class)
		case p.kind == evidence.KindToolOutput:
			s.old = s.headTail(s.old, p.text, Span{Role: p.role, Kind: p.kind, Class: p.class})
		default:
			s.old = chunk(s.old, p.text, Span{Role: p.role, Kind: p.kind, Class: p.class})
		}
	}
}

// claudeParts takes a text in the user's chair apart. All parts are contiguous in
// it, a person's words first; a text that needs no cut comes back whole.
func claudeParts(text string) []part {
	if interruptions[strings.TrimSpace(text)] {
		return []part{{text, evidence.System, "", evidence.Boilerplate}}
	}
	if !strings.Contains(text, "<") {
		return []part{{text, evidence.User, "", evidence.Dialogue}}
	}
	if p, ok := wrapped(text); ok {
		return []part{p}
	}
	const open, shut = "<system-reminder>", "</system-reminder>"
	var human, machine []part
	keep := func(s string) {
		if s = strings.TrimSpace(s); s != "" {
			human = append(human, part{s, evidence.User, "", evidence.Dialogue})
		}
	}
	rest, from := text, 0
	for {
		i := strings.Index(rest[from:], open)
		if i < 0 {
			break
		}
		i += from
		n := strings.Index(rest[i:], shut)
		if n < 0 {
			break
		}
		if i > 0 && strings.IndexByte("`\"'", rest[i-1]) >= 0 { // quoted
			from = i + len(open)
			continue
		}
		n += i + len(shut)
		keep(rest[:i])
		machine = append(machine, part{rest[i:n], evidence.System, "", evidence.Boilerplate})
		rest, from = rest[n:], 0
	}
	if len(machine) == 0 {
		return []part{{text, evidence.User, "", evidence.Dialogue}}
	}
	keep(rest)
	return append(human, machine...)
}

// wrapped reports whether text is wrapper elements and white space only, and what
// it is then: a command a person ran, its output, or the program's own words.
func wrapped(text string) (part, bool) {
	out := part{text, evidence.System, "", evidence.Boilerplate}
	var input, output, other bool
	class := evidence.Boilerplate
	rest := strings.TrimSpace(text)
	for rest != "" {
		if rest[0] != '<' {
			return out, false
		}
		n := strings.IndexAny(rest, "> \t\n")
		if n < 0 || !wrappers[rest[1:n]] {
			return out, false
		}
		name := rest[1:n]
		end := strings.Index(rest, "</"+name+">")
		if end < 0 {
			return out, false
		}
		switch name {
		case "bash-input":
			input = true
		case "bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr":
			output = true
		case "command-name", "command-message", "command-args", "task-notification", "teammate-message", "user-memory-input":
			// Somebody's act, if not a person's own words.
			class = evidence.ToolTraffic
			other = true
		default:
			other = true
		}
		rest = strings.TrimSpace(rest[end+len(name)+3:])
	}
	out.class = class
	switch {
	case !input && !output && !other:
		return out, false
	case input && !other && !output:
		out = part{text, evidence.User, evidence.KindToolInput, evidence.ToolTraffic}
	case output && !other && !input:
		out = part{text, evidence.Tool, evidence.KindToolOutput, evidence.ToolTraffic}
	}
	return out, true
}
