package index

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// phraseExpression is a phrase in FTS5's language. Of a long one the beginning has to do.
func phraseExpression(tokens []string) string {
	return quote(strings.Join(tokens[:min(len(tokens), maxTerms)], " "))
}

// phrase brings the documents that hold the whole query word by word, or may. FTS5 walks
// the lists of all words of a phrase, common ones too, so documents that hold its rarest
// words are looked for first: when they are few, their texts tell.
func (g *gathering) phrase(q *Query) error {
	if len(q.Phrase) < 2 {
		return nil
	}
	if slices.Contains(g.found.Docs, 0) {
		g.found.Complete = g.found.Complete || q.Exact
		return nil
	}
	if len(g.terms) == 1 && len(g.rare) == 1 { // all are there that may hold it
		for i := range g.found.Candidates {
			g.found.Candidates[i].Look = q.Exact
		}
		g.found.Complete = (g.found.Complete || q.Exact) && !g.unread
		return nil
	}
	docs, bits, few, err := g.narrow(q.Phrase)
	if err != nil {
		return err
	}
	if few {
		for _, d := range docs {
			g.add(d, bits, false).Look = true
		}
		g.found.Complete = (g.found.Complete || q.Exact) && !g.unread
		return nil
	}
	whole, bring := both(phraseExpression(q.Phrase), g.filter), func(d int64) { g.add(d, g.all(), true) }
	if !q.Exact {
		return g.sliced(whole, (timeSlices+1)*sliceCap, q.Want, bring)
	}
	docs, err = g.snap.docs(whole, phraseCap)
	for _, d := range docs {
		bring(d)
	}
	for i := range g.found.Candidates {
		c := &g.found.Candidates[i]
		c.Look = c.Look || c.Spelt != 0
	}
	g.found.Complete = err == nil && len(docs) < phraseCap && !g.unread
	return err
}

// cased reports whether a token could be the word of a text in other letter case.
func cased(token string) bool { return len(token) > 1 && strings.ContainsFunc(token, unicode.IsLower) }

// What is looked for in place of a phrase.
const (
	rarest = 3 // so many of its rarest terms
	window = 3 // so many tokens that follow each other
)

// narrow lists documents among which all are that hold a phrase, with the bits of terms
// they hold; few is false when there are too many.
func (g *gathering) narrow(phrase []string) (docs []int64, bits uint64, few bool, err error) {
	if docs, few = g.withAllRare(); few {
		return docs, 0, true, nil
	}
	order := slices.Concat(g.rare, g.many)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.found.Docs[a], g.found.Docs[b]) })
	var and []string
	for _, i := range order[:min(rarest, len(order))] {
		and = append(and, g.wide[i])
		if g.wide[i] == g.exprs[i] {
			bits |= 1 << i
		}
	}
	docs, err = g.snap.docs(both(allOf(and), g.filter), lookCap+1)
	if few = len(docs) <= lookCap; few || err != nil {
		return docs, bits, few, err
	}
	docs, err = g.snap.docs(both(allOf(g.wide), g.filter), runCap+1)
	if few = len(docs) <= runCap; few || err != nil {
		return docs, 0, few, err
	}
	g.found.Capitals = slices.ContainsFunc(phrase, cased)
	if len(phrase) <= window {
		return docs, 0, false, nil
	}
	docs, err = g.snap.docs(both(phraseExpression(g.rarestRun(phrase, window)), g.filter), runCap+1)
	return docs, 0, len(docs) <= runCap, err
}

// rarestRun is the run of n tokens of which the fewest documents hold one.
func (g *gathering) rarestRun(tokens []string, n int) []string {
	best, least := 0, int64(math.MaxInt64)
	for i := 0; i+n <= len(tokens); i++ {
		var sum int64
		for _, t := range tokens[i : i+n] {
			if w := g.words[quote(t)]; w != nil {
				sum += w.n
			} else {
				sum += g.snap.spans // a stop word
			}
		}
		if sum < least {
			best, least = i, sum
		}
	}
	return tokens[best : best+n]
}

// withAllRare lists the documents that hold, or may hold, all rare terms; few is false when
// there is no rare term or there are more than lookCap such documents.
func (g *gathering) withAllRare() (docs []int64, few bool) {
	if len(g.rare) == 0 {
		return nil, false
	}
	var rare uint64
	for _, i := range g.rare {
		rare |= 1 << i
	}
	for i := range g.found.Candidates {
		if c := &g.found.Candidates[i]; (c.Terms|c.Maybe|c.Spelt)&rare == rare {
			if docs = append(docs, c.Doc); len(docs) > lookCap {
				return nil, false
			}
		}
	}
	return docs, true
}

// HoldsPhrase reports whether a document holds the tokens one after another.
func (s *Snapshot) HoldsPhrase(doc int64, tokens []string) (bool, error) {
	docs, err := s.docsBetween(phraseExpression(tokens), doc, doc, 1)
	return len(docs) > 0, err
}

// all has the bits of all terms.
func (g *gathering) all() uint64 {
	if len(g.terms) < 64 {
		return 1<<len(g.terms) - 1
	}
	return math.MaxUint64
}
