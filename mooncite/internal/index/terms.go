package index

import (
	"cmp"
	"slices"
	"strings"

	"localmcp/mooncite/internal/lexis"
)

// termExpression is a term in FTS5's language.
func termExpression(t *lexis.Term) string {
	if t.Exact {
		return quote(t.Whole)
	}
	e := quote(strings.Join(parts(t), " "))
	if hasWhole(t) {
		return anyOf([]string{e, quote(t.Whole)})
	}
	return e
}

// parts are the tokens that follow each other where a term stands.
func parts(t *lexis.Term) []string {
	if len(t.Pairs) > 0 {
		return t.Pairs
	}
	return t.Tokens
}

// hasWhole reports whether a term can also be shown by one token of its own.
func hasWhole(t *lexis.Term) bool {
	return t.Whole != "" && (len(t.Tokens) > 1 || t.Whole != t.Tokens[0])
}

// Holds reports whether a document holds a term.
func (s *Snapshot) Holds(doc int64, t *lexis.Term) (bool, error) {
	docs, err := s.docsBetween(termExpression(t), doc, doc, 1)
	return len(docs) > 0, err
}

// A word is what is known of one token, or of an expression.
type word struct {
	docs []int64 // all documents, if it is rare
	n    int64   // how many; estimated if it is common
}

func (w *word) rare() bool { return w.n <= rareCap }

// word looks for an expression inside the filter. Common ones are remembered with the
// index.
func (g *gathering) word(expression string) (*word, error) {
	if w := g.words[expression]; w != nil {
		return w, nil
	}
	s, full := g.snap, both(expression, g.filter)
	s.mu.Lock()
	n, ok := s.common[full]
	s.mu.Unlock()
	w := &word{n: n}
	if !ok {
		docs, err := s.docs(full, rareCap+1)
		if err != nil {
			return nil, err
		}
		if w.n = int64(len(docs)); w.rare() {
			w.docs = docs
		} else {
			// As dense everywhere as at the oldest end.
			width := docs[len(docs)-1] - docs[0] + 1
			w.n = max(int64(float64(len(docs))*float64(s.top-s.bottom+1)/float64(width)), rareCap+1)
			s.mu.Lock()
			if len(s.common) >= maxCommon {
				clear(s.common)
			}
			s.common[full] = w.n
			s.mu.Unlock()
		}
	}
	g.words[expression] = w
	return w, nil
}

// probe looks for each term alone: a rare one brings all its documents.
func (g *gathering) probe() error {
	for i := range g.terms {
		if err := g.probeTerm(i); err != nil {
			return err
		}
	}
	slices.SortStableFunc(g.many, func(a, b int) int { return cmp.Compare(g.found.Docs[a], g.found.Docs[b]) })
	g.found.Complete = g.found.Complete && len(g.many) == 0
	return nil
}

func (g *gathering) probeTerm(i int) error {
	if err := g.probeRunning(i); err != nil || len(g.terms[i].Fields) == 0 {
		return err
	}
	return g.probeFields(i)
}

// probeFields brings the documents that hold all fields of a term but perhaps not side by
// side as running tokens.
func (g *gathering) probeFields(i int) error {
	if g.found.Docs[i] >= g.want {
		return nil // enough for an answer without them; a common term is never complete
	}
	var and []string
	var docs []int64
	first := true
	for _, f := range g.terms[i].Fields {
		either := spellings(f)
		var sum word
		for _, e := range either {
			w, err := g.word(e)
			if err != nil {
				return err
			}
			sum.n, sum.docs = sum.n+w.n, append(sum.docs, w.docs...)
		}
		if sum.n == 0 {
			return nil
		}
		and = append(and, anyOf(either))
		if sum.rare() {
			slices.Sort(sum.docs)
			if first {
				docs, first = slices.Compact(sum.docs), false
			} else {
				docs = within(docs, sum.docs)
			}
		}
	}
	if first {
		var err error
		if docs, err = g.snap.docs(both(allOf(and), g.filter), rareCap+1); err != nil {
			return err
		}
		if len(docs) > rareCap {
			g.found.Complete, g.unread = false, true
			docs = docs[:rareCap]
		}
	}
	if len(docs) > 0 && g.found.Docs[i] == 0 {
		g.found.Docs[i] = int64(len(docs))
		g.rare = append(g.rare, i)
	}
	for _, d := range docs {
		if c := g.add(d, 0, false); (c.Terms|c.Maybe)>>i&1 == 0 {
			c.Spelt |= 1 << i
		}
	}
	return nil
}

// spellings are the tokens that a field stands as.
func spellings(f lexis.Field) []string {
	if f.Word == f.Stem {
		return []string{quote(f.Stem)}
	}
	return []string{quote(f.Stem), quote(f.Word)}
}

// within keeps the documents of one list that are in another sorted one.
func within(docs, sorted []int64) []int64 {
	return slices.DeleteFunc(docs, func(d int64) bool {
		_, ok := slices.BinarySearch(sorted, d)
		return !ok
	})
}

// probeRunning looks for a term's running tokens, or its whole.
func (g *gathering) probeRunning(i int) error {
	t := &g.terms[i]
	e, whole := quote(strings.Join(parts(t), " ")), &word{}
	if t.Exact || hasWhole(t) {
		var err error
		if whole, err = g.word(quote(t.Whole)); err != nil {
			return err
		}
		switch {
		case t.Exact:
			e = quote(t.Whole)
		case whole.n > 0: // most words are no whole of several parts, and one list is read quicker than two
			e = anyOf([]string{e, quote(t.Whole)})
		}
	}
	wide, docs, few, err := g.rarestParts(t)
	if err != nil {
		return err
	}
	if whole.n > 0 || wide == "" {
		wide = e
	}
	g.exprs, g.wide = append(g.exprs, e), append(g.wide, wide)
	if few && whole.rare() {
		g.found.Docs[i] = int64(len(docs) + len(whole.docs))
		for _, d := range docs {
			g.add(d, 0, false).Maybe |= 1 << i
		}
		g.know(i, whole.docs)
		return nil
	}
	if p := parts(t); wide != e && whole.n == 0 && len(p) > partRun {
		// Two parts that follow each other nearly always tell, and are found quicker than all.
		w, err := g.word(quote(strings.Join(g.rarestRun(p, partRun), " ")))
		if err != nil {
			return err
		}
		if w.rare() {
			g.found.Docs[i] = w.n
			for _, d := range w.docs {
				g.add(d, 0, false).Maybe |= 1 << i
			}
			g.know(i, nil)
			return nil
		}
	}
	w, err := g.word(e)
	if err != nil {
		return err
	}
	g.found.Docs[i] = w.n
	if !w.rare() {
		g.many = append(g.many, i)
		return nil
	}
	g.know(i, w.docs)
	return nil
}

// partRun is how many parts of a term are looked for together.
const partRun = 2

// know takes the documents of a rare term.
func (g *gathering) know(i int, docs []int64) {
	if g.found.Docs[i] > 0 {
		g.rare = append(g.rare, i)
	}
	for _, d := range docs {
		c := g.add(d, 1<<i, false)
		c.Maybe &^= 1 << i
	}
}

// rarestParts looks for the parts of a term of several one by one: FTS5 walks the lists
// of all parts of a phrase to the end, common ones too. The documents of all rare parts
// may hold the term; few is false when they are more than lookCap or there is no rare
// part. wide is the rarest part.
func (g *gathering) rarestParts(t *lexis.Term) (wide string, docs []int64, few bool, err error) {
	if t.Exact || len(parts(t)) < 2 {
		return "", nil, false, nil
	}
	least, first := int64(0), true
	for _, p := range parts(t) {
		w, err := g.word(quote(p))
		if err != nil {
			return "", nil, false, err
		}
		if wide == "" || w.n < least {
			wide, least = quote(p), w.n
		}
		switch {
		case !w.rare():
		case first:
			docs, first = slices.Clone(w.docs), false
		default:
			docs = within(docs, w.docs)
		}
	}
	// Where a word may have capitals inside, what holds the term has the word in one of its spellings.
	for i, f := range t.Fields {
		w, err := g.word(quote(f.Stem))
		if err != nil {
			return "", nil, false, err
		}
		if i == 0 || w.n < least {
			wide, least = anyOf(spellings(f)), w.n
		}
	}
	if len(t.Fields) > 0 && len(t.Fields) != len(t.Tokens) { // the query's own capitals part a word
		wide = anyOf([]string{wide, quote(strings.Join(t.Tokens, " "))})
	}
	return wide, docs, !first && len(docs) <= lookCap, nil
}
