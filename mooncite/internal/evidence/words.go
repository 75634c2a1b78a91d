package evidence

import "strings"

// Origin is one of the five products whose history is a source.
type Origin string

// The five origins, in the order used wherever order matters.
const (
	Pi      Origin = "pi"
	OMP     Origin = "omp"
	Claude  Origin = "claude-code"
	Codex   Origin = "codex"
	ChatGPT Origin = "chatgpt"
)

// Origins lists the five origins in their fixed order.
func Origins() []Origin { return []Origin{Pi, OMP, Claude, Codex, ChatGPT} }

// ParseOrigin returns the origin of that name.
func ParseOrigin(s string) (Origin, bool) {
	for _, o := range Origins() {
		if string(o) == s {
			return o, true
		}
	}
	return "", false
}

// Names lists words for a sentence: "pi, omp or codex".
func Names[S ~string](all []S) string {
	var b strings.Builder
	for i, s := range all {
		switch {
		case i == 0:
		case i == len(all)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// Role says in whose chair a span was spoken.
type Role string

// The roles. Machine text in the user's chair never has role User.
const (
	User       Role = "user"
	Assistant  Role = "assistant"
	System     Role = "system"
	Developer  Role = "developer"
	Tool       Role = "tool"       // tool output of Claude Code, Codex and ChatGPT
	ToolResult Role = "toolResult" // tool output of Pi and OMP
	Summary    Role = "summary"
	Unknown    Role = "unknown"
)

// Roles lists the roles in their fixed order.
func Roles() []Role {
	return []Role{User, Assistant, System, Developer, Tool, ToolResult, Summary, Unknown}
}

// ParseRole returns the role of that name; any other name is Unknown, false.
func ParseRole(s string) (Role, bool) {
	for _, r := range Roles() {
		if string(r) == s {
			return r, true
		}
	}
	return Unknown, false
}

// Class orders spans of equal strength: dialogue before tool traffic before
// boilerplate (decision 2.4).
type Class uint8

// The classes, best first.
const (
	Dialogue    Class = iota // what a person or a model said, and summaries
	ToolTraffic              // tool input and tool output
	Boilerplate              // system prompts, instructions, environment context
)

// Source kinds of spans that the earlier program did not have.
const (
	KindToolInput  = "tool_input"  // commands, file paths and other arguments of a tool call
	KindToolOutput = "tool_output" // what a tool answered
)

// NoTime is the time of an entry without a usable timestamp.
const NoTime int64 = -1 << 63

// Bounds of what is taken from one record.
const (
	MaxSpanBytes    = 256 << 10 // a longer text value is cut into consecutive spans (escaped UTF-8 bytes)
	MaxToolBytes    = 32 << 10  // of one tool result or tool argument: head and tail, half each
	MaxHiddenBytes  = 1 << 20   // of a tool result's middle that is searched without being kept
	MaxIdentifier   = 256       // UTF-8 bytes of a session or entry id
	MaxKind         = 64        // UTF-8 bytes of a source kind
	MaxToolInputs   = 256       // text values taken from one tool call; what is beyond is said to be unread
	MaxRecordBytes  = 64 << 20  // a longer record is not parsed; it is counted as oversized
	MaxConversation = 256 << 20 // the same for one conversation of a ChatGPT export
)
