package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"localmcp/internal/keyshape"
	"slices"
	"strconv"
	"strings"
	"time"

	"localmcp/internal/op"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
)

// Bounds of recall.
const (
	defaultLimit = 5
	maxLimit     = 20
	reach        = 200 // candidates at most that pages give of one query
	lookedAt     = 32  // texts read at a time in an order of time
	passedOver   = 256 // candidates looked at beyond them: echoes, copies, other forms
)

// recallBudget is how long a recall waits for newer text to be read.
const recallBudget = 250 * time.Millisecond

// RecallIn is what mooncite_recall takes.
type RecallIn struct {
	Query        string `json:"query" minLength:"1" maxLength:"2000" doc:"Words, an identifier, a path, an error name, or an exact phrase in quotation marks."`
	Limit        int    `json:"limit" default:"5" min:"1" max:"20" doc:"How many candidates."`
	Project      string `json:"project,omitempty" maxLength:"256" doc:"Only this project, as an earlier answer names it (project:...)."`
	SessionID    string `json:"session_id,omitempty" maxLength:"512" doc:"Only this session, as an earlier answer names it."`
	After        string `json:"after,omitempty" maxLength:"64" doc:"Only at or after this time, ISO 8601 with offset, such as 2026-03-01T00:00:00Z."`
	Before       string `json:"before,omitempty" maxLength:"64" doc:"Only at or before this time."`
	Role         string `json:"role,omitempty" maxLength:"32" doc:"Only this speaker: user, assistant, system, developer, tool, toolResult, summary or unknown."`
	SourceOrigin string `json:"source_origin,omitempty" maxLength:"32" doc:"Only this product: pi, omp, claude-code, codex or chatgpt."`
	Order        string `json:"order,omitempty" maxLength:"16" doc:"relevance (default), newest or oldest."`
	Cursor       string `json:"cursor,omitempty" maxLength:"128" doc:"nextCursor of the answer before, for the candidates after it. Pages reach 200 candidates at most; the last one warns when there may be more."`
	DebugTiming  bool   `json:"debug_timing,omitempty" doc:"Report how long the recall took."`
}

// RecallOut is what mooncite_recall answers.
type RecallOut struct {
	Outcome          string      `json:"outcome" enum:"matches|weak_leads|no_match|inconclusive|invalid_scope|unavailable"`
	Conclusive       bool        `json:"conclusive" doc:"Nothing that could match was unread, skipped or still being read."`
	Meaning          string      `json:"meaning"`
	Next             *Next       `json:"next"`
	Query            string      `json:"query"`
	LexicalTerms     []string    `json:"lexicalTerms"`
	Scope            Scope       `json:"scope"`
	Searched         Searched    `json:"searched"`
	Candidates       []Candidate `json:"candidates"`
	NextCursor       *string     `json:"nextCursor" doc:"Pass as cursor for further candidates."`
	Generation       string      `json:"generation"`
	TrustState       string      `json:"trustState" enum:"full_verified|append_trusted"`
	Coverage         string      `json:"coverage" enum:"complete|partial"`
	EchoesSuppressed int         `json:"echoesSuppressed"`
	Masked           int         `json:"masked" doc:"Key-shaped secrets masked in all excerpts."`
	Warnings         []string    `json:"warnings"`
	Timing           *Timing     `json:"timing,omitempty"`
	ResultDetail     *Detail     `json:"resultDetail,omitempty"`

	now    time.Time
	offset int
	first  int
	wrong  string // why the scope is invalid
}

// Recall finds bounded lexical evidence for a query.
func (e *Engine) Recall(ctx context.Context, in RecallIn) (RecallOut, error) {
	began := e.now()
	if in.Limit <= 0 {
		in.Limit = defaultLimit
	}
	in.Limit = min(in.Limit, maxLimit)
	out := RecallOut{Query: evidence.Visible(strings.TrimSpace(in.Query)), TrustState: fullVerified, Coverage: complete, Generation: emptyGeneration, now: began,
		Scope: Scope{Project: optional(in.Project), SessionID: optional(in.SessionID)}, LexicalTerms: []string{}, Candidates: []Candidate{}, Warnings: []string{}}
	plan, meaning := planRecall(in)
	if meaning != "" {
		return out.invalid(in, meaning), nil
	}
	out.LexicalTerms, out.offset, out.first = plan.names(), plan.offset, plan.first
	blank := out
	err := e.ahead(ctx, func(f *freshness) (number int64, err error) {
		out = blank
		err = e.read(ctx, f, func(v *view) error {
			if v.snap != nil {
				number = v.snap.Number()
			}
			return plan.clone().search(v, &out)
		})
		return number, err
	})
	var bad *scopeError
	switch {
	case errors.As(err, &bad):
		return out.invalid(in, bad.meaning), nil
	case err != nil:
		return out.unavailable(err), nil
	}
	if in.DebugTiming {
		out.Timing = e.timings.recall(e.now().Sub(began))
	}
	return out, nil
}

// scopeError says that a query's scope cannot be meant.
type scopeError struct{ meaning string }

func (s *scopeError) Error() string { return s.meaning }

// A recallPlan is a checked query.
type recallPlan struct {
	*wanted
	in     RecallIn
	filter index.Filter
	order  index.Order
	offset int
	first  int // limit of the first page
}

// clone gives a plan of its own to one search.
func (p *recallPlan) clone() *recallPlan {
	c := *p
	return &c
}

// planRecall checks what needs no index. meaning is not "" when the scope is invalid.
func planRecall(in RecallIn) (p *recallPlan, meaning string) {
	p = &recallPlan{wanted: parseQuery(in.Query), in: in, filter: index.Any(), first: in.Limit}
	switch in.Order {
	case "", "relevance":
	case "newest":
		p.order = index.Newest
	case "oldest":
		p.order = index.Oldest
	default:
		return nil, "order is not one of relevance, newest and oldest"
	}
	for _, b := range []struct {
		name, value string
		to          *int64
	}{{"after", in.After, &p.filter.After}, {"before", in.Before, &p.filter.Before}} {
		if b.value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339Nano, b.value)
		if err != nil {
			return nil, b.name + " is not an ISO 8601 date and time with an offset, such as 2026-03-01T00:00:00Z"
		}
		*b.to = t.UnixMilli()
		if b.name == "after" && t.Nanosecond()%1e6 != 0 {
			*b.to++ // stored times are whole milliseconds
		}
	}
	if p.filter.After != evidence.NoTime && p.filter.Before != evidence.NoTime && p.filter.After > p.filter.Before {
		return nil, "after is later than before"
	}
	if in.Role != "" {
		r, ok := evidence.ParseRole(in.Role)
		if !ok {
			return nil, "role is not one of " + join(evidence.Roles())
		}
		p.filter.Role = r
	}
	if in.SourceOrigin != "" {
		o, ok := evidence.ParseOrigin(in.SourceOrigin)
		if !ok {
			return nil, "source_origin is not one of " + join(evidence.Origins())
		}
		p.filter.Origin = o
	}
	if in.Project != "" && !evidence.IsProject(in.Project) {
		return nil, "project is not a project identity as answers name it (project:name-0123456789abcdef), a path is none"
	}
	if in.Cursor != "" {
		var ok bool
		if p.offset, p.first, ok = parseCursor(in.Cursor); !ok {
			return nil, "cursor is not one that an answer gave"
		}
	}
	return p, ""
}

func join[S ~string](all []S) string {
	var names []string
	for _, s := range all {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

const cursorPrefix = "recall:"

// A cursor holds how many candidates were given, fewer than reach, and how many the
// first page was for.
func makeCursor(offset, first int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.Itoa(offset) + ":" + strconv.Itoa(first)))
}

func parseCursor(s string) (offset, first int, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return 0, 0, false
	}
	rest, ok := strings.CutPrefix(string(b), cursorPrefix)
	if !ok {
		return 0, 0, false
	}
	o, f, ok := strings.Cut(rest, ":")
	if !ok {
		return 0, 0, false
	}
	offset, err = strconv.Atoi(o)
	first, err2 := strconv.Atoi(f)
	return offset, first, err == nil && err2 == nil && offset > 0 && offset < reach && first > 0 && first <= maxLimit
}

// search answers a plan from one state of the index.
func (p *recallPlan) search(v *view, out *RecallOut) error {
	out.Generation, out.TrustState, out.Coverage = v.generation(), v.trust(), v.coverage()
	if v.snap == nil || len(v.sources) == 0 {
		out.Searched = Searched{Pending: v.fresh.pending()}
		p.nothingIndexed(v, out)
		return nil
	}
	if err := p.narrow(v); err != nil {
		return err
	}
	out.Searched = v.searched(&p.filter)
	n, err := v.snap.Count(&p.filter)
	if err != nil {
		return err
	}
	out.Scope.EvidenceSpans = n
	j := newJudge(p.wanted)
	defer j.close()
	g, err := p.gather(v, j, p.first)
	if err != nil {
		return err
	}
	hits := foldCopies(g.hits)
	if p.offset > 0 {
		if hits, err = p.further(v, j, hits[:min(len(hits), p.first)], g); err != nil {
			return err
		}
	}
	out.EchoesSuppressed = g.echoes
	if len(hits) > reach {
		hits, g.partly = hits[:reach], true
	}
	hits = hits[min(p.offset, len(hits)):]
	if len(hits) > p.in.Limit {
		hits = hits[:p.in.Limit]
		out.NextCursor = optional(makeCursor(p.offset+p.in.Limit, p.first))
	}
	for _, h := range hits {
		j.locate(h)
		c := p.candidate(v, h)
		out.Masked += c.Masked
		out.Candidates = append(out.Candidates, c)
	}
	p.conclude(v, j, out, hits, g)
	return nil
}

// further lists all candidates that pages reach: those of the first page as it gave
// them, then what a wider search finds. So no page repeats what an earlier one gave.
func (p *recallPlan) further(v *view, j *judge, first []*hit, g *gathered) ([]*hit, error) {
	wide, err := p.gather(v, j, reach+1) // one more tells that there is more
	if err != nil {
		return nil, err
	}
	given := map[int64]bool{}
	all := slices.Clone(first)
	for _, h := range first {
		given[h.doc] = true
		h.copies, h.twins = 0, 0 // counted anew
	}
	for _, h := range wide.hits {
		if !given[h.doc] {
			all = append(all, h)
		}
	}
	*g = *wide
	return foldCopies(all), nil
}

// narrow resolves what the scope names against the index.
func (p *recallPlan) narrow(v *view) error {
	if p.in.Project != "" {
		if p.filter.Project = v.snap.Project(p.in.Project); p.filter.Project == 0 {
			p.filter.Project = -1 // well-formed, and nothing has it
		}
	}
	if p.in.SessionID == "" {
		return nil
	}
	o, root, raw, qualified := evidence.ParseQualifiedSession(p.in.SessionID)
	if qualified && !v.authorized(o, root) {
		return &scopeError{"session_id names a source that is not authorized"}
	}
	if !qualified {
		raw = p.in.SessionID
	}
	units, err := v.snap.UnitsOfSession(raw)
	if err != nil {
		return err
	}
	places := map[[2]string]bool{}
	p.filter.Units = []int64{-1}
	for i := range units {
		src := v.sources[units[i].Source]
		if src == nil || qualified && (src.Origin != o || src.Root != root) {
			continue
		}
		places[[2]string{string(src.Origin), src.Root}] = true
		p.filter.Units = append(p.filter.Units, units[i].ID)
	}
	switch {
	case qualified:
	case len(places) == 0:
		return &scopeError{"session_id is not known; use the qualified form an answer gives (origin:digest:id)"}
	case len(places) > 1:
		return &scopeError{"session_id is known in more than one source; use the qualified form an answer gives (origin:digest:id)"}
	}
	return nil
}

// gathered is what was found for a query, ranked, without echoes.
type gathered struct {
	hits   []*hit
	echoes int
	hidden bool // text that is searched but not kept may answer
	traces bool // such text holds a part of the query at least
	partly bool // there may be more candidates than these
}

// gather finds, reads, weighs and ranks candidates, for want of them.
func (p *recallPlan) gather(v *view, j *judge, want int) (*gathered, error) {
	direct, err := p.direct(v, want)
	if err != nil {
		return nil, err
	}
	q := index.Query{Terms: p.terms, Phrase: p.phrase, Exact: p.quoted, Filter: p.filter, Want: 2 * want, Enough: 2 * p.first, Order: p.order}
	for {
		g := &gathered{hits: slices.Clone(direct)}
		found, err := v.snap.Search(&q)
		if err != nil {
			return nil, err
		}
		for i, n := range found.Docs { // at most as many as there are terms
			j.weights[i] = index.Weight(n, v.snap.SpanCount())
		}
		if err := p.weighAll(v, j, g, found, want); err != nil {
			return nil, err
		}
		// At one end of time there may be nothing but echoes: look farther.
		if p.order != index.ByStrength && !found.Complete && len(g.hits) < want && q.Want < 1<<14 {
			q.Want *= 8
			if len(g.hits) == 0 {
				q.Enough = q.Want
			}
			continue
		}
		if p.order == index.ByStrength {
			rank(g.hits)
		} else {
			rankByTime(g.hits, p.order)
		}
		return g, nil
	}
}

// weighAll reads and weighs candidates, some at a time.
func (p *recallPlan) weighAll(v *view, j *judge, g *gathered, found *index.Found, want int) error {
	seen := map[int64]bool{}
	for _, h := range g.hits {
		seen[h.doc] = true
		j.weigh(h, 0, false)
	}
	byStrength := p.order == index.ByStrength
	most := 2 * max(want, defaultLimit) // besides what may hold the phrase
	onlyPhrase := p.quoted && len(p.phrase) > 1 && byStrength
	weighed := map[string]*hit{} // copies of a turn count once
	for i := 0; i < len(found.Candidates); {
		if byStrength && !found.Candidates[i].Look && (len(weighed) >= most || i >= most+passedOver && len(g.hits) < most) {
			g.partly = true
			break
		}
		room := max(most-len(weighed), 2)
		if !byStrength {
			room = lookedAt
		}
		var some []*index.Candidate
		for ; i < len(found.Candidates) && len(some) < room; i++ {
			if c := &found.Candidates[i]; !seen[c.Doc] && (!onlyPhrase || c.Phrase || c.Look) {
				some = append(some, c)
			}
		}
		hits, err := p.look(v, j, some)
		if err != nil {
			return err
		}
		for k, h := range hits {
			if h == nil || h.span.Gone {
				continue
			}
			c := some[k]
			if !toldByText(h) {
				if holds, err := p.settle(v, c); err != nil || !holds {
					if err != nil {
						return err
					}
					continue
				}
			}
			switch {
			case onlyPhrase && !c.Phrase && !c.Look:
				continue
			case h.span.Hidden:
				if p.filter.Holds(h.span.Time) || h.span.Role == evidence.Unknown {
					g.traces = true
					g.hidden = g.hidden || !byStrength || p.hiddenMatters(c)
				}
				continue
			case !p.filter.Holds(h.span.Time):
				continue
			case h.echo:
				g.echoes++
				continue
			}
			if !toldByText(h) {
				j.weigh(h, c.Terms, c.Phrase)
			}
			// A quoted word is found in its other forms too, as each word of a phrase is.
			if h.exact == notExact && (p.quoted && len(p.phrase) != 1 || h.matched == 0) {
				continue
			}
			weighed[h.text] = h
			g.hits = append(g.hits, h)
		}
	}
	g.partly = g.partly || !found.Complete || found.Capitals && p.quoted && len(g.hits) == 0
	return nil
}

// toldByText reports whether a hit's text alone tells what it holds.
func toldByText(h *hit) bool { return !h.span.Hidden && len(h.text) <= readAtMost }

// look reads candidates' texts and weighs those that tell all: unpacking and weighing
// take longest, so another goroutine helps. A hit is nil when there is none any more.
func (p *recallPlan) look(v *view, j *judge, some []*index.Candidate) ([]*hit, error) {
	hits := make([]*hit, len(some))
	read := func(j *judge, k int) error {
		h := hits[k]
		err := h.read()
		if err == nil && toldByText(h) {
			j.weigh(h, 0, false)
		}
		return err
	}
	todo := make(chan int, len(some))
	helped := make(chan error, 1)
	help := len(some) > 1
	if help {
		twin := j.twin()
		go func() {
			helped <- contained("reading texts", func() (err error) {
				defer twin.close()
				for k := range todo {
					if err == nil {
						err = read(twin, k)
					}
				}
				return err
			})
		}()
	}
	err := func() (err error) {
		defer close(todo)
		for k, c := range some {
			if hits[k], err = v.bare(c.Doc); err != nil {
				return err
			}
			if hits[k] != nil {
				todo <- k
			}
		}
		return nil
	}()
	for k := range todo {
		if err == nil {
			err = read(j, k)
		}
	}
	if help {
		err = errors.Join(err, <-helped)
	}
	return hits, err
}

// settle asks the index what a candidate's text cannot tell. holds is false when it
// holds nothing of the query.
func (p *recallPlan) settle(v *view, c *index.Candidate) (holds bool, err error) {
	if c.Look {
		c.Look = false
		if c.Phrase, err = v.snap.HoldsPhrase(c.Doc, p.phrase); err != nil {
			return false, err
		}
	}
	c.Terms |= c.Spelt // nothing else can tell
	if c.Maybe == 0 {
		return true, nil
	}
	c.Maybe = 0
	for i := range p.terms {
		if c.Terms>>i&1 == 0 {
			if holds, err = v.snap.Holds(c.Doc, &p.terms[i]); err != nil {
				return false, err
			}
			if holds {
				c.Terms |= 1 << i
			}
		}
	}
	return c.Terms != 0, nil
}

// hiddenMatters reports whether text that is not kept could be an answer: it holds
// the phrase, or a good part of the terms.
func (p *recallPlan) hiddenMatters(c *index.Candidate) bool {
	if p.quoted {
		return c.Phrase || len(p.phrase) < 2
	}
	n := 0
	for i := range p.terms {
		n += int(c.Terms >> i & 1)
	}
	return c.Phrase || 2*n >= len(p.terms)
}

// direct finds the spans whose citation, entry, session or project the query is.
func (p *recallPlan) direct(v *view, want int) ([]*hit, error) {
	if l, ok := evidence.ParseLocator(p.raw); ok {
		h, err := v.locate(l)
		if err != nil || h == nil || !v.passes(h, &p.filter) {
			return nil, err
		}
		h.direct, h.metadata = true, true
		return []*hit{h}, nil
	}
	if strings.ContainsAny(p.raw, " \t\n") || !evidence.IsIdentifier(p.raw) {
		return nil, nil
	}
	var hits []*hit
	add := func(docs []int64) error {
		for _, d := range docs {
			h, err := v.hit(d)
			if err != nil {
				return err
			}
			if h != nil && !h.span.Hidden && !h.span.Gone && v.passes(h, &p.filter) {
				h.metadata = true
				hits = append(hits, h)
			}
			if len(hits) > want { // the one more tells of a further page
				return nil
			}
		}
		return nil
	}
	if evidence.IsProject(p.raw) {
		if id := v.snap.Project(p.raw); id != 0 {
			docs, err := v.snap.Newest(&index.Filter{Project: id, After: evidence.NoTime, Before: evidence.NoTime}, 2*want)
			if err != nil {
				return nil, err
			}
			err = add(docs)
			return hits, err
		}
		return nil, nil
	}
	if o, root, raw, ok := evidence.ParseQualifiedSession(p.raw); ok && v.authorized(o, root) {
		units, err := v.snap.UnitsOfSession(raw)
		if err != nil {
			return nil, err
		}
		f := index.Any()
		for _, u := range units {
			if src := v.sources[u.Source]; src != nil && src.Origin == o && src.Root == root {
				f.Units = append(f.Units, u.ID)
			}
		}
		if f.Units == nil {
			return nil, nil
		}
		docs, err := v.snap.Newest(&f, 2*want)
		if err != nil {
			return nil, err
		}
		err = add(docs)
		return hits, err
	}
	if !looksLikeID(p.raw) {
		return nil, nil
	}
	docs, err := v.snap.OfEntry(p.raw, want+1)
	if err != nil {
		return nil, err
	}
	err = add(docs)
	return hits, err
}

// looksLikeID reports whether a query is so much like an entry id that all blocks are
// looked through for it.
func looksLikeID(s string) bool {
	for _, prefix := range []string{"line-", "msg_", "call_", "toolu_", "item_", "client-created-"} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return len(s) >= 8 && strings.Trim(s, "0123456789abcdef-") == "" && strings.ContainsAny(s, "0123456789")
}

// candidate shows a hit.
func (p *recallPlan) candidate(v *view, h *hit) Candidate {
	from, to := excerpt(h.text, h.at, excerptBytes)
	text, masks := keyshape.Mask(h.text, from, to)
	s := h.span
	c := Candidate{
		EvidenceID: v.evidenceID(h), EvidenceURI: v.evidenceURI(h),
		Excerpt: evidence.Visible(text), OmittedBytes: len(h.text) - (to - from), Masked: masks,
		Project: v.snap.ProjectName(s.Project), SessionID: evidence.Visible(evidence.QualifiedSession(h.src.Origin, h.src.Root, h.unit.Session)),
		EntryID: evidence.Visible(s.Entry), ParentID: optional(evidence.Visible(s.Parent)),
		Role: string(s.Role), SourceOrigin: string(h.src.Origin), SourceKind: evidence.Visible(s.Kind), EventTimestamp: stamp(s.Time),
		RecordProvenance: provenance(h), BranchState: branch(s), CompactionState: compaction(h), SourcePresent: h.src.Present, IsSubagent: h.src.Info.Subagent,
		IsEcho: h.echo, Copies: h.copies,
	}
	if h.twins > 0 {
		c.DuplicateSpanCount = h.twins + 1
	}
	m := &c.Match
	m.Band, m.TermCoverage = h.band(), float64(int(h.coverage*100+0.5))/100
	m.MatchedTerms, m.MissingTerms = []string{}, []string{}
	for i := range p.terms {
		if h.matched>>i&1 == 1 {
			m.MatchedTerms = append(m.MatchedTerms, evidence.Visible(p.terms[i].Text))
		} else {
			m.MissingTerms = append(m.MissingTerms, evidence.Visible(p.terms[i].Text))
		}
	}
	switch {
	case h.metadata:
		m.Kind, m.TermCoverage = "metadata_exact", 1
		m.MatchedTerms, m.MissingTerms = []string{evidence.Visible(p.raw)}, []string{}
	case h.exact > notExact && p.quoted:
		m.Kind = "phrase_exact"
	case h.exact == textExact:
		m.Kind = "text_exact"
	default:
		m.Kind = "terms"
	}
	return c
}

func provenance(h *hit) string {
	if h.src.Origin == evidence.ChatGPT || h.span.Copy {
		return "copy"
	}
	return "original"
}

func branch(s *index.Span) string {
	if s.Off {
		return "off_branch"
	}
	return "current"
}

func compaction(h *hit) string {
	last := h.src.Info.CompactionLine
	switch {
	case h.span.Role == evidence.Summary:
		return "summary"
	case last == 0 || h.src.Origin == evidence.ChatGPT:
		return "none"
	case h.span.Line+h.unit.Line < last:
		return "pre_compaction"
	}
	return "kept_after_compaction"
}

// conclude gives the outcome its words.
func (p *recallPlan) conclude(v *view, j *judge, out *RecallOut, hits []*hit, g *gathered) {
	gaps := v.gaps(&p.filter)
	if g.hidden || g.traces && len(hits) == 0 {
		gaps = append(gaps, "text that can be searched but not cited holds these words: a damaged record, or the middle of a tool output longer than 32 KiB")
	}
	if p.unfinished(v, j) {
		gaps = append(gaps, "a source file ends in an unfinished record that holds some of these words; it is read when it is complete")
	}
	if g.partly && len(hits) == 0 {
		gaps = append(gaps, "more text holds these words than could be looked through; narrow the query or its scope")
	}
	if p.cut && len(hits) == 0 {
		gaps = append(gaps, "only the first 64 words of the query were looked for")
	}
	out.Warnings = append(out.Warnings, gaps...)
	if g.partly && len(hits) > 0 && out.NextCursor == nil {
		out.Warnings = append(out.Warnings, "there may be more than paging reaches; narrow the query or its scope")
	}
	if out.EchoesSuppressed > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d recursive Mooncite echo(es) suppressed.", out.EchoesSuppressed))
	}
	if out.Scope.EvidenceSpans == 0 {
		out.Warnings = append(out.Warnings, "requested filters contain no indexed evidence")
	}
	switch {
	case len(hits) > 0 && slices.ContainsFunc(hits, (*hit).strong):
		out.Outcome, out.Conclusive = Matches, len(gaps) == 0
		out.Meaning = "Past conversations hold text that matches. Verify a candidate before you rely on it."
		if len(gaps) > 0 {
			out.Meaning = "Past conversations hold text that matches; not everything could be searched, so there may be more. Verify a candidate before you rely on it."
		}
	case len(hits) > 0:
		out.Outcome = WeakLeads
		out.Meaning = "Only loosely related text was found: leads, not an answer. Other words may find more."
	case len(p.terms) == 0:
		out.Outcome = Inconclusive
		out.Meaning = "The query has no word, number or character that can be searched for, so nothing can be said about it."
	case len(gaps) > 0:
		out.Outcome = Inconclusive
		out.Meaning = "Nothing was found, but not everything could be searched: this is no proof of absence."
	case p.offset > 0:
		out.Outcome = NoMatch
		out.Meaning = "There are no further candidates."
	default:
		out.Outcome, out.Conclusive = NoMatch, true
		where := ""
		if p.narrowed() {
			where = " inside the filters given"
		}
		out.Meaning = fmt.Sprintf("No text in %d searched sources%s matches, up to %s. Other words for the same thing were not looked for.", out.Searched.Sources, where, orUnknown(out.Searched.UpTo))
	}
	if n := v.e.forgotten.within(&p.filter); n > 0 && out.Outcome != Matches {
		out.Warnings = append(out.Warnings, fmt.Sprintf("what was taken out with `mooncite forget` is not looked for (sessions and spans: %d)", n))
	}
	switch out.Outcome {
	case Matches, WeakLeads:
		out.Next = call(ToolInspect, "re-read the source and verify the first candidate", map[string]any{"evidence_id": out.Candidates[0].EvidenceID})
	case Inconclusive:
		out.Next = p.remedy(v)
	}
}

// remedy is what to do when an answer is not conclusive.
func (p *recallPlan) remedy(v *view) *Next {
	switch {
	case len(p.terms) == 0:
		return call(ToolRecall, "ask with at least one word, number or identifier", nil)
	case v.fresh.busy():
		return call(ToolRecall, "ask again in a moment, when the newer text has been read", p.again())
	}
	return call(ToolStatus, "see which sources could not be read and what to do", nil)
}

// nothingIndexed answers when no source was ever read.
func (p *recallPlan) nothingIndexed(v *view, out *RecallOut) {
	out.Warnings = append(out.Warnings, v.gaps(&p.filter)...)
	if v.fresh.busy() {
		out.Outcome = Inconclusive
		out.Meaning = "The histories are being read for the first time; ask again in a moment."
		out.Next = call(ToolRecall, "the first index is being made", p.again())
		return
	}
	out.Outcome = Unavailable
	out.Meaning = "No usable session files are registered or found, so nothing can be searched."
	out.Warnings = append(out.Warnings, "no usable registered session files")
	out.Next = call(ToolStatus, "see which sources are looked at and what is wrong with them", nil)
}

// Wrong says what of a call's scope cannot be meant as it is written: the field's name
// first, then what it is not; "" when nothing is.
func (in RecallIn) Wrong() string {
	_, meaning := planRecall(in)
	return meaning
}

// Wrong says the same of an answer whose outcome is [InvalidScope]; "" otherwise.
func (o RecallOut) Wrong() string { return o.wrong }

// again is the same call once more, with all that narrows it.
func (p *recallPlan) again() map[string]any {
	var args map[string]any
	data, err := op.Encode(p.in)
	if err == nil {
		err = json.Unmarshal(data, &args)
	}
	if err != nil {
		panic(err) // what a caller can say in JSON can be said again
	}
	return args
}

func (o RecallOut) invalid(in RecallIn, meaning string) RecallOut {
	o.Outcome, o.Conclusive, o.wrong = InvalidScope, false, meaning
	o.Meaning = "The scope of the query cannot be used: " + meaning + "."
	o.Warnings = append(o.Warnings, meaning)
	o.Next = call(ToolRecall, "ask again with a valid scope or without it", map[string]any{"query": in.Query, "limit": in.Limit})
	return o
}

func (o RecallOut) unavailable(err error) RecallOut {
	o.Outcome, o.Conclusive, o.Coverage = Unavailable, false, partial
	o.Meaning = "The index cannot be searched: " + plain(err)
	o.Warnings = append(o.Warnings, plain(err))
	o.Next = call(ToolStatus, "see what is wrong", nil)
	return o
}
