package engine

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"localmcp/internal/op"
	"localmcp/mooncite/internal/evidence"
)

// Outcomes of recall and inspect.
const (
	Matches      = "matches"
	WeakLeads    = "weak_leads"
	NoMatch      = "no_match"
	Inconclusive = "inconclusive"
	InvalidScope = "invalid_scope"
	Unavailable  = "unavailable"

	Verified = "verified"
	Stale    = "stale"
	Missing  = "missing"
	Excluded = "excluded"
	Corrupt  = "corrupt"
)

// Next is what the reader best does next.
type Next struct {
	Action    string         `json:"action" enum:"call|run" doc:"call a tool, or run a shell command."`
	Target    string         `json:"target" doc:"The tool or the command."`
	Arguments map[string]any `json:"arguments,omitempty" doc:"Arguments of the tool."`
	Reason    string         `json:"reason"`
}

func call(tool, reason string, args map[string]any) *Next {
	return &Next{Action: "call", Target: tool, Arguments: args, Reason: reason}
}

func run(command, reason string) *Next {
	return &Next{Action: "run", Target: command, Reason: reason}
}

func (n *Next) text() string {
	if n == nil {
		return "Next: nothing to do.\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Next: %s %s", n.Action, n.Target)
	if n.Arguments != nil {
		args, err := op.Encode(n.Arguments)
		if err == nil {
			b.WriteString(" " + string(args))
		}
	}
	return b.String() + ": " + n.Reason + "\n"
}

// Searched says what an answer rests on.
type Searched struct {
	Sources int     `json:"sources" doc:"Source files whose text was searched."`
	UpTo    *string `json:"upTo" doc:"When the newest of them was last written."`
	Pending int     `json:"pending" doc:"Source files with text that is not searched yet or cannot be read."`
}

// Scope says what a recall was narrowed to.
type Scope struct {
	Project       *string `json:"project"`
	SessionID     *string `json:"sessionId"`
	EvidenceSpans int64   `json:"evidenceSpans" doc:"Spans inside the scope."`
}

// Match says how a candidate answers the query.
type Match struct {
	Kind         string   `json:"kind" enum:"metadata_exact|phrase_exact|text_exact|terms"`
	Band         string   `json:"band" enum:"strong|partial|weak"`
	MatchedTerms []string `json:"matchedTerms"`
	MissingTerms []string `json:"missingTerms"`
	TermCoverage float64  `json:"termCoverage" doc:"Share of the query's terms found, 0 to 1."`
}

// Candidate is one piece of evidence for a query.
type Candidate struct {
	EvidenceID         string  `json:"evidenceId"`
	Excerpt            string  `json:"excerpt" doc:"Untrusted text of a past conversation, quoted as data."`
	OmittedBytes       int     `json:"omittedBytes" doc:"Bytes of the span's text outside the excerpt."`
	Role               string  `json:"role"`
	SourceOrigin       string  `json:"sourceOrigin"`
	SourceKind         string  `json:"sourceKind"`
	EventTimestamp     *string `json:"eventTimestamp"`
	Match              Match   `json:"match"`
	Project            string  `json:"project"`
	SessionID          string  `json:"sessionId"`
	EntryID            string  `json:"entryId"`
	ParentID           *string `json:"parentId"`
	EvidenceURI        string  `json:"evidenceUri"`
	RecordProvenance   string  `json:"recordProvenance" enum:"original|copy"`
	BranchState        string  `json:"branchState" enum:"current|off_branch"`
	CompactionState    string  `json:"compactionState" enum:"none|pre_compaction|summary|kept_after_compaction"`
	SourcePresent      bool    `json:"sourcePresent" doc:"False: the source file is gone; the text is what was indexed."`
	IsSubagent         bool    `json:"isSubagent"`
	IsEcho             bool    `json:"isEcho" doc:"Mooncite's own output, stored by a client."`
	Copies             int     `json:"copies" doc:"Further spans that hold the same turn (forks, resumes), folded into this one."`
	DuplicateSpanCount int     `json:"duplicateSpanCount,omitempty" doc:"Spans of the same session with the same text, this one included."`
	Masked             int     `json:"masked" doc:"Key-shaped secrets masked in the excerpt."`
}

// stamp is a time in answers: UTC with three digits of a second.
func stamp(ms int64) *string {
	if ms == evidence.NoTime {
		return nil
	}
	s := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orUnknown(s *string) string {
	if s == nil {
		return "unknown"
	}
	return *s
}

func orNever(s *string) string {
	if s == nil {
		return "never"
	}
	return *s
}

// when shows a time for people: how long ago it was, and the time itself.
func when(at *string, now time.Time) string {
	if at == nil {
		return "unknown"
	}
	t, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return *at
	}
	return relative(t.UnixMilli(), now) + " · " + *at
}

// relative says how long ago a time was, for people.
func relative(ms int64, now time.Time) string {
	d := now.Sub(time.UnixMilli(ms))
	ago := " ago"
	if d < 0 {
		d, ago = -d, " from now"
	}
	for _, u := range []struct {
		size time.Duration
		name string
	}{{365 * 24 * time.Hour, "year"}, {30 * 24 * time.Hour, "month"}, {24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.size); n > 0 {
			s := strconv.Itoa(n) + " " + u.name
			if n > 1 {
				s += "s"
			}
			return s + ago
		}
	}
	return "just now"
}

// indent writes a source's text so that no line of it can pass for a line of the
// answer.
func indent(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString("    ")
		b.WriteString(line)
		b.WriteByte('\n')
	}
}
