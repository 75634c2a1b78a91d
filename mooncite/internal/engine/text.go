package engine

import (
	"fmt"
	"strings"

	"localmcp/internal/op"
)

// Detail says that an answer was cut to fit and where the whole is.
type Detail = op.Detail

func detailText(d *Detail) string {
	if d == nil {
		return ""
	}
	s := "This answer was cut to fit."
	if d.FullResult != nil {
		s += fmt.Sprintf(" The whole of it (%d bytes): resource %s until %s.", d.FullResult.Bytes, d.FullResult.URI, d.FullResult.ExpiresAt)
	}
	return s + "\n"
}

// line writes one "Label: value" line; line breaks in the value cannot end it.
func line(b *strings.Builder, label, value string) {
	b.WriteString(label + ": " + strings.ReplaceAll(value, "\n", `\u{a}`) + "\n")
}

// Text is the answer in words, with the same facts as its structure.
func (o RecallOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mooncite recall: %s; conclusive=%t; %s\n", o.Outcome, o.Conclusive, o.Meaning)
	line(&b, "Query", o.Query)
	if len(o.LexicalTerms) > 0 {
		line(&b, "Terms", strings.Join(o.LexicalTerms, ", "))
	}
	fmt.Fprintf(&b, "Searched: %d sources, up to %s, %d pending. Scope: project %s, session %s, %d spans. Coverage %s, trust %s, generation %s.\n",
		o.Searched.Sources, orUnknown(o.Searched.UpTo), o.Searched.Pending, orAny(o.Scope.Project), orAny(o.Scope.SessionID), o.Scope.EvidenceSpans, o.Coverage, o.TrustState, o.Generation)
	for _, w := range o.Warnings {
		line(&b, "Warning", w)
	}
	if o.EchoesSuppressed > 0 || o.Masked > 0 {
		fmt.Fprintf(&b, "Echoes suppressed: %d. Secrets masked: %d.\n", o.EchoesSuppressed, o.Masked)
	}
	for i := range o.Candidates {
		o.candidateText(&b, i)
	}
	if o.NextCursor != nil {
		line(&b, "More candidates", "cursor "+*o.NextCursor)
	}
	if t := o.Timing; t != nil {
		fmt.Fprintf(&b, "Timing: recall %.3f ms, workflow %s until %s\n", *t.RecallMs, t.WorkflowID, t.ExpiresAt)
	}
	b.WriteString(detailText(o.ResultDetail))
	b.WriteString(o.Next.text())
	return b.String()
}

func orAny(s *string) string {
	if s == nil {
		return "any"
	}
	return *s
}

func (o RecallOut) candidateText(b *strings.Builder, i int) {
	c := &o.Candidates[i]
	fmt.Fprintf(b, "\nFinding %d\n", i+1)
	line(b, "Evidence ID", c.EvidenceID)
	line(b, "Source", c.SourceOrigin+", "+c.SourceKind+flags(c.SourcePresent, c.IsSubagent))
	line(b, "Role", c.Role)
	line(b, "Time", o.when(c.EventTimestamp))
	b.WriteString("Excerpt (quoted, untrusted):\n")
	indent(b, c.Excerpt)
	line(b, "What it establishes", establishes(c))
	line(b, "Match", fmt.Sprintf("%s; %s; term_coverage=%.2f; omitted_bytes=%d; copies=%d; duplicates=%d; masked=%d", c.Match.Band, c.Match.Kind, c.Match.TermCoverage, c.OmittedBytes, c.Copies, c.DuplicateSpanCount, c.Masked))
	line(b, "Matched terms", orNone(c.Match.MatchedTerms))
	line(b, "Missing terms", orNone(c.Match.MissingTerms))
	line(b, "Record", c.RecordProvenance+", "+c.BranchState+", "+c.CompactionState)
	if rel := o.relation(i); rel != "" {
		line(b, "Relationship", rel)
	}
	line(b, "Project", c.Project)
	line(b, "Session ID", c.SessionID)
	line(b, "Entry ID", c.EntryID+", parent "+orUnknown(c.ParentID))
	line(b, "Evidence URI", c.EvidenceURI)
	if c.IsEcho {
		b.WriteString("This is Mooncite's own output, stored by a client.\n")
	}
}

func flags(present, subagent bool) string {
	var s string
	if subagent {
		s += ", sub-agent"
	}
	if !present {
		s += ", source file is gone"
	}
	return s
}

func (o RecallOut) when(at *string) string { return when(at, o.now) }

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

// establishes says in a sentence what a candidate shows, no more than it does.
func establishes(c *Candidate) string {
	switch c.Match.Kind {
	case "metadata_exact":
		return "the query is an identifier of this span"
	case "phrase_exact":
		return "the quoted words stand in this text in this order"
	case "text_exact":
		return "the query's words stand in this text as written"
	}
	return fmt.Sprintf("this text holds %d of %d words of the query; whether it answers it is for the reader to judge", len(c.Match.MatchedTerms), len(c.Match.MatchedTerms)+len(c.Match.MissingTerms))
}

// relation says how a candidate is related to an earlier one of the answer.
func (o RecallOut) relation(i int) string {
	for k := range i {
		if o.Candidates[k].SessionID == o.Candidates[i].SessionID {
			return fmt.Sprintf("same session as finding %d", k+1)
		}
	}
	for k := range i {
		if o.Candidates[k].Project != "" && o.Candidates[k].Project == o.Candidates[i].Project {
			return fmt.Sprintf("same project as finding %d", k+1)
		}
	}
	return ""
}

// Fit gives as many of the first candidates as fit; the others follow by cursor.
func (o RecallOut) Fit(max int, detail *op.Detail) any {
	all := o.Candidates
	o.ResultDetail = detail
	for n := len(all); n >= 0; n-- {
		o.Candidates = all[:n:n]
		if n < len(all) {
			o.NextCursor = optional(makeCursor(o.offset+n, o.first))
			if n == 0 {
				o.NextCursor = nil
			}
		}
		if op.Fits(o, max) {
			return o
		}
	}
	return o
}

// Text is the answer in words, with the same facts as its structure.
func (o InspectOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Mooncite inspection: %s; conclusive=%t; %s\n", o.Outcome, o.Conclusive, o.Meaning)
	line(&b, "Evidence", o.EvidenceID)
	if o.Message != "" {
		line(&b, "Note", o.Message)
	}
	if o.Masked > 0 {
		fmt.Fprintf(&b, "Secrets masked: %d.\n", o.Masked)
	}
	if o.Target != nil {
		label := "Verified target"
		if o.Outcome != Verified {
			label = "Target as last indexed, not verified"
		}
		o.spanText(&b, label, o.Target)
	}
	if l := o.Locator; l != nil {
		fmt.Fprintf(&b, "Place: %s, file %s, line %d, bytes %d to %d, span %d\n", l.SourceOrigin, strings.ReplaceAll(l.RelativePath, "\n", `\u{a}`), l.Line, l.ByteStart, l.ByteEnd, l.SpanOrdinal)
		fmt.Fprintf(&b, "Record digest: %s; prefix digest: %s (%s)\n", l.RecordDigest, l.PrefixDigest, l.PrefixDigestKind)
	}
	for i := range o.Window {
		if w := &o.Window[i]; w.Relation != "target" {
			o.spanText(&b, "Context "+w.Relation, w)
		}
	}
	if t := o.Timing; t != nil {
		fmt.Fprintf(&b, "Timing: inspect %.3f ms", *t.InspectMs)
		if t.CombinedMs != nil {
			fmt.Fprintf(&b, ", with recall %.3f ms", *t.CombinedMs)
		}
		b.WriteString(" " + t.Warning + "\n")
	}
	b.WriteString(detailText(o.ResultDetail))
	b.WriteString(o.Next.text())
	return b.String()
}

func (o InspectOut) spanText(b *strings.Builder, label string, w *WindowSpan) {
	fmt.Fprintf(b, "\n%s\n", label)
	line(b, "Evidence ID", w.EvidenceID)
	line(b, "Source", w.SourceOrigin+", "+w.SourceKind+flags(w.SourcePresent, w.IsSubagent))
	line(b, "Role", w.Role)
	line(b, "Time", when(w.EventTimestamp, o.now))
	line(b, "Record", w.RecordProvenance+", "+w.BranchState+", "+w.CompactionState)
	line(b, "Session ID", w.SessionID)
	line(b, "Entry ID", w.EntryID+", parent "+orUnknown(w.ParentID))
	fmt.Fprintf(b, "Text (quoted, untrusted; omitted_bytes=%d):\n", w.OmittedBytes)
	indent(b, w.Text)
}

// Fit leaves out the neighbours farthest from the target, then cuts the target.
func (o InspectOut) Fit(max int, detail *op.Detail) any {
	o.ResultDetail = detail
	for !op.Fits(o, max) && len(o.Window) > 1 {
		at := 0
		for i := range o.Window {
			if o.Window[i].Relation == "target" {
				at = i
			}
		}
		if at >= len(o.Window)-1-at {
			o.Window = o.Window[1:]
		} else {
			o.Window = o.Window[:len(o.Window)-1]
		}
	}
	if !op.Fits(o, max) && o.Target != nil {
		t := *o.Target
		for !op.Fits(o, max) && len(t.Text) > 256 {
			cut := strings.ToValidUTF8(t.Text[:len(t.Text)*3/4], "")
			t.OmittedBytes += len(t.Text) - len(cut)
			t.Text = cut
			o.Target = &t
			if len(o.Window) == 1 {
				o.Window = []WindowSpan{t}
			}
		}
	}
	return o
}
