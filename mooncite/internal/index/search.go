package index

import (
	"cmp"
	"database/sql"
	"math"
	"slices"
	"strconv"
	"strings"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/lexis"
)

// Bounds of a search: how many documents a step may bring.
const (
	rareCap    = 256  // a term with more documents is common
	phraseCap  = 256  // documents that hold the whole query as a phrase
	lookCap    = 16   // documents whose texts are to tell what they hold
	runCap     = 64   // the same, where a part of the phrase is known to be there
	edgeCap    = 4096 // documents of the days that a bound of time cuts
	sliceCap   = 20   // documents a time slice gives, of dialogue and of the rest
	sliceLook  = 256  // documents of a time slice that are looked at
	timeSlices = 3    // slices of time besides the newest: 3, 9 and 27 times as wide
	wholeBelow = 4096 // documents that are one slice
	dayCap     = 2048 // documents of one day in an order of time
)

// Query is what a search looks for.
type Query struct {
	Terms  []lexis.Term
	Phrase []string // running tokens of the whole query text; used from two on
	Filter Filter
	Exact  bool // only what holds the phrase answers
	Want   int  // how many good candidates the caller needs
	Enough int  // in an order of time: so many that hold all terms make those that hold only some not wanted
	Order  Order
}

// Order is the order the caller wants; it decides where candidates are looked for.
type Order int

// The orders.
const (
	ByStrength Order = iota
	Newest
	Oldest
)

// A Candidate is a document that may answer.
type Candidate struct {
	Doc    int64
	Phrase bool   // holds the query's tokens as a phrase
	Look   bool   // may hold the phrase: its text tells
	Terms  uint64 // bit i: known to hold term i; a bit not set says nothing in itself
	Maybe  uint64 // bit i: may hold term i: its text tells
	Spelt  uint64 // bit i: may hold term i spelt with capitals inside its words: its text tells
}

// Found is the result of a search.
type Found struct {
	Candidates []Candidate // best guesses first, each document once
	Docs       []int64     // by term: how many documents hold or may hold it, estimated above rareCap
	// Capitals says that a phrase was looked for as running tokens only: texts that write
	// one of its words with capitals inside (JavaScript) were too many to look at.
	Capitals bool
	// Complete says that every document that holds any term, or with Exact the
	// phrase, is among the candidates.
	Complete bool
}

// maxTerms is how many terms of a query are looked for.
const maxTerms = 64

// docs lists documents that match an expression, lowest numbers first, at most limit.
// That is the way FTS5's lists run: the other way every page is walked twice.
func (s *Snapshot) docs(expression string, limit int) ([]int64, error) {
	return s.list("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", expression, limit)
}

// newest lists documents that match an expression between two numbers, highest first,
// at most limit.
func (s *Snapshot) newest(expression string, low, high int64, limit int) ([]int64, error) {
	return s.list("SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?", expression, low, high, limit)
}

func (s *Snapshot) docsBetween(expression string, low, high int64, limit int) ([]int64, error) {
	return s.list("SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?", expression, low, high, limit)
}

// list gives the numbers that a query gives. They cross from SQLite in one text: a row
// each would cost as much again as finding them.
func (s *Snapshot) list(query string, args ...any) ([]int64, error) {
	var text sql.NullString
	if _, err := s.conn.Row(s.ctx, "SELECT group_concat(rowid) FROM ("+query+")", args, &text); err != nil || text.String == "" {
		return nil, err
	}
	out := make([]int64, 0, strings.Count(text.String, ",")+1)
	for part := range strings.SplitSeq(text.String, ",") {
		d, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// Count is the number of documents a filter lets through.
func (s *Snapshot) Count(f *Filter) (int64, error) {
	base := f.expression()
	if !f.timed() {
		if base == "" {
			return s.spans, nil
		}
		return s.count(base)
	}
	p := f.periods(s.months)
	var n int64
	if p.inside != "" {
		var err error
		if n, err = s.count(both(base, p.inside)); err != nil {
			return 0, err
		}
	}
	if p.edge == "" {
		return n, nil
	}
	docs, err := s.docs(both(base, p.edge), math.MaxInt32)
	if err != nil {
		return 0, err
	}
	for _, d := range docs {
		sp, err := s.Span(d)
		if err != nil {
			return 0, err
		}
		if sp != nil && !sp.Hidden && f.Holds(sp.Time) {
			n++
		}
	}
	return n, nil
}

func (s *Snapshot) count(expression string) (int64, error) {
	var n int64
	_, err := s.conn.Row(s.ctx, "SELECT count(*) FROM words WHERE words MATCH ?", []any{expression + " NOT " + quote(hiddenToken)}, &n)
	return n, err
}

// restriction is the whole filter as one expression; documents of the days it cuts
// are let through and have to be looked at by the caller.
func (s *Snapshot) restriction(f *Filter) (expression string, none bool) {
	base := f.expression()
	if !f.timed() {
		return base, false
	}
	p := f.periods(s.months)
	var parts []string
	for _, e := range []string{p.inside, p.edge} {
		if e != "" {
			parts = append(parts, e)
		}
	}
	if len(parts) == 0 {
		return "", true
	}
	return both(base, anyOf(parts)), false
}

// damaged is what may be inside a filter although nobody can tell: hidden text of no
// known speaker, which is what stands in damaged bytes. It is "" when the filter
// asks for nothing that such text lacks.
func (f *Filter) damaged() string {
	if f.Role == "" && f.Project == 0 && !f.timed() {
		return ""
	}
	where := Filter{Origin: f.Origin, Units: f.Units, After: evidence.NoTime, Before: evidence.NoTime}
	return both(allOf([]string{quote(hiddenToken), quote(roleToken(evidence.Unknown))}), where.expression())
}

// Search finds candidates. What holds all rare terms is always among them; where a
// query has only common terms they come from the newest end and from slices over
// all time. No step ranks or walks an unbounded set.
func (s *Snapshot) Search(q *Query) (*Found, error) {
	terms := q.Terms[:min(len(q.Terms), maxTerms)]
	found := &Found{Docs: make([]int64, len(terms)), Complete: len(terms) == len(q.Terms)}
	filter, none := s.restriction(&q.Filter)
	if damaged := q.Filter.damaged(); damaged != "" {
		if none {
			filter, none = damaged, false
		} else {
			filter = anyOf([]string{filter, damaged})
		}
	}
	if none || len(terms) == 0 || s.top == 0 {
		return found, nil
	}
	g := &gathering{snap: s, filter: filter, found: found, at: map[int64]int{}, terms: terms, words: map[string]*word{}, want: int64(q.Want+1) / 2}
	if q.Order != ByStrength {
		g.want = math.MaxInt64 // the first in time may be spelt in any way
	}
	if err := g.probe(); err != nil {
		return nil, err
	}
	if q.Order != ByStrength {
		found.Complete = len(terms) == len(q.Terms) // the walk says so where it ends early
		if err := g.byTime(q); err != nil {
			return nil, err
		}
		return found, nil
	}
	if err := g.phrase(q); err != nil {
		return nil, err
	}
	if err := g.edges(q); err != nil {
		return nil, err
	}
	if err := g.common(q); err != nil {
		return nil, err
	}
	return found, g.order()
}

type gathering struct {
	snap   *Snapshot
	filter string
	found  *Found
	at     map[int64]int // document -> index of its candidate
	terms  []lexis.Term
	words  map[string]*word // tokens looked for
	exprs  []string         // of the terms
	wide   []string         // of each term: what is quickly found and holds for each document of the term
	rare   []int            // terms with at most rareCap documents, at least one
	many   []int            // common terms, rarest first
	want   int64            // documents of a term that are enough to answer
	unread bool             // more documents hold a term's fields than are brought
}

func (g *gathering) add(doc int64, terms uint64, phrase bool) *Candidate {
	i, ok := g.at[doc]
	if !ok {
		i = len(g.found.Candidates)
		g.at[doc] = i
		g.found.Candidates = append(g.found.Candidates, Candidate{Doc: doc})
	}
	c := &g.found.Candidates[i]
	c.Terms |= terms
	c.Phrase = c.Phrase || phrase
	return c
}

// edges brings what stands in the days that a bound of time cuts and is inside the
// bounds. The other steps take those days whole, so that few spans inside could be
// lost behind many outside.
func (g *gathering) edges(q *Query) error {
	if !q.Filter.timed() || g.found.Complete {
		return nil
	}
	p := q.Filter.periods(g.snap.months)
	if p.edge == "" {
		return nil
	}
	base := both(q.Filter.expression(), p.edge)
	bring := func(expression string, terms uint64, phrase bool) error {
		docs, err := g.snap.docs(both(expression, base), edgeCap)
		if err != nil {
			return err
		}
		if docs, err = g.inside(docs, &q.Filter); err != nil {
			return err
		}
		for _, d := range docs {
			g.add(d, terms, phrase)
		}
		return nil
	}
	for _, i := range g.many {
		if err := bring(g.exprs[i], 1<<i, false); err != nil {
			return err
		}
	}
	if len(q.Phrase) < 2 || slices.Contains(g.found.Docs, 0) {
		return nil
	}
	return bring(phraseExpression(q.Phrase), g.all(), true)
}

// inside keeps the documents whose time is inside a filter's bounds, and what has no
// time because it is damaged.
func (g *gathering) inside(docs []int64, f *Filter) ([]int64, error) {
	if !f.timed() {
		return docs, nil
	}
	kept := docs[:0]
	for _, d := range docs {
		sp, err := g.snap.Span(d)
		if err != nil {
			return nil, err
		}
		if sp != nil && (f.Holds(sp.Time) || sp.Hidden && sp.Role == evidence.Unknown) {
			kept = append(kept, d)
		}
	}
	return kept, nil
}

// common completes the picture with the common terms.
func (g *gathering) common(q *Query) error {
	if len(g.many) == 0 || q.Exact && len(q.Phrase) > 1 {
		return nil // only what holds the phrase answers
	}
	want := q.Want
	if len(g.rare) > 0 && len(g.found.Candidates) > want {
		// Which of the rare terms' documents hold the common ones too.
		var or []string
		for _, i := range g.rare {
			or = append(or, g.wide[i])
		}
		base := both(anyOf(or), g.filter)
		for _, i := range g.many {
			docs, err := g.snap.docs(both(base, g.exprs[i]), rareCap)
			if err != nil {
				return err
			}
			for _, d := range docs {
				if _, ok := g.at[d]; ok { // what only the wide form found is none
					g.add(d, 1<<i, false)
				}
			}
		}
	}
	if len(g.rare) > 0 && len(g.found.Candidates) >= want {
		return nil // what holds no rare term is not wanted
	}
	// All common terms together; then, while that is too little, without the more common half.
	for n := len(g.many); n > 0; n /= 2 {
		var and []string
		var bits uint64
		for _, i := range g.many[:n] {
			and = append(and, g.exprs[i])
			bits |= 1 << i
		}
		before := len(g.found.Candidates)
		if err := g.sliced(both(allOf(and), g.filter), sliceLook, want, func(d int64) { g.add(d, bits, false) }); err != nil {
			return err
		}
		if len(g.found.Candidates) >= 2*want && len(g.found.Candidates) > before || len(g.rare) > 0 {
			break
		}
	}
	return nil
}

// sliced brings documents from slices over all numbers, which grow with time of
// reading and, within a rebuild, with time of writing: the newest ones of the newest
// slice, some of each other one. Slices grow towards the past. Of each slice dialogue comes
// first; other documents are brought where there is less dialogue than wanted. Of each
// slice the first look documents are looked at.
func (g *gathering) sliced(expression string, look, want int, bring func(doc int64)) error {
	s := g.snap
	var rest []int64
	said := 0
	take := func(most int, docs []int64, err error) error {
		if err != nil {
			return err
		}
		talk, other := 0, 0
		for _, d := range docs {
			is, err := s.dialogue(d)
			switch {
			case err != nil:
				return err
			case is && talk < most:
				talk++
				bring(d)
			case !is && other < most:
				other++
				rest = append(rest, d)
			}
		}
		said += talk
		return nil
	}
	all := s.top - s.bottom + 1
	if all <= wholeBelow {
		docs, err := s.newest(expression, s.bottom, s.top, look)
		if err := take((timeSlices+1)*sliceCap, docs, err); err != nil {
			return err
		}
	} else {
		top, width := s.top, all>>5
		docs, err := s.newest(expression, top-width+1, top, look)
		if err := take(2*sliceCap, docs, err); err != nil {
			return err
		}
		for range timeSlices {
			top, width = top-width, 3*width
			if top < s.bottom || said >= 2*want {
				break
			}
			docs, err := s.docsBetween(expression, max(s.bottom, top-width+1), top, look)
			if err := take(sliceCap, docs, err); err != nil {
				return err
			}
		}
	}
	if said < want {
		for _, d := range rest {
			bring(d)
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// order puts the best guesses first: phrases and what may be one, then the weight of
// the terms known to be there, then dialogue, then the newest.
func (g *gathering) order() error {
	weight := make([]float64, len(g.terms))
	for i, n := range g.found.Docs {
		weight[i] = Weight(n, g.snap.spans)
	}
	found := g.found.Candidates
	type rank struct {
		score float64
		said  bool
	}
	ranks := make(map[int64]rank, len(found))
	for i := range found {
		c := &found[i]
		var r rank
		for k := range weight {
			if (c.Terms|c.Maybe)>>k&1 == 1 {
				r.score += weight[k]
			}
		}
		var err error
		if r.said, err = g.snap.dialogue(c.Doc); err != nil {
			return err
		}
		ranks[c.Doc] = r
	}
	slices.SortFunc(found, func(a, b Candidate) int {
		ra, rb := ranks[a.Doc], ranks[b.Doc]
		return cmp.Or(cmp.Compare(b2i(b.Phrase || b.Look), b2i(a.Phrase || a.Look)), cmp.Compare(rb.score, ra.score),
			cmp.Compare(b2i(rb.said), b2i(ra.said)), cmp.Compare(b.Doc, a.Doc))
	})
	return nil
}

// Weight is a term's inverse document frequency, as BM25 has it.
func Weight(docs, all int64) float64 {
	if docs <= 0 {
		docs = 1
	}
	return math.Log(1 + (float64(all)-float64(docs)+0.5)/(float64(docs)+0.5))
}

// Newest lists the documents a filter lets through, highest numbers first, at most
// limit. Bounds of time are not looked at.
func (s *Snapshot) Newest(f *Filter, limit int) ([]int64, error) {
	return s.newest(f.expression(), s.bottom, s.top, limit)
}
