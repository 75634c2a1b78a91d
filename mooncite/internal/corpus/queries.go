package corpus

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Kinds are the ten kinds of query, in the order they take turns.
var Kinds = []string{"needle", "phrase", "common2", "mixed3", "question", "error", "path", "rare1", "miss", "unicode"}

// QueryCount is how many queries a corpus comes with.
const QueryCount = 200

// Query is one search with what is known of its answer.
type Query struct {
	Query string `json:"query"`
	Kind  string `json:"kind"`
	// Expect, when not empty, is text that one of the first five findings must
	// hold; letter case and white space do not count.
	Expect string `json:"expect,omitempty"`
}

// queries makes the queries: of those of kind "phrase" every second one asks for a
// planted phrase, the others for the beginning of a sentence that occurs often.
func (g *generator) queries(r *rand.Rand) []Query {
	v := g.words
	r.Shuffle(len(g.needles), func(i, k int) { g.needles[i], g.needles[k] = g.needles[k], g.needles[i] })
	r.Shuffle(len(g.quotes), func(i, k int) { g.quotes[i], g.quotes[k] = g.quotes[k], g.quotes[i] })
	hidden := r.Perm(len(g.planted))
	rare := func() string { return pick(r, v.rare[:6000]) }
	noun := func(n int) string { return pick(r, common[:n]) }
	out := make([]Query, QueryCount)
	for i := range out {
		n := i / len(Kinds)
		q := Query{Kind: Kinds[i%len(Kinds)]}
		switch q.Kind {
		case "needle":
			q.Query = rare()
			if len(g.needles) > 0 {
				q.Query = g.needles[n%len(g.needles)]
				q.Expect = q.Query
			}
		case "phrase":
			switch {
			case n%2 == 0:
				q.Expect = g.planted[hidden[n/2%len(hidden)]].Text
				q.Query = `"` + q.Expect + `"`
			case len(g.quotes) > 0:
				q.Query = `"` + g.quotes[n%len(g.quotes)] + `"`
			default:
				q.Query = `"` + cut(pick(r, v.sentences), 50) + `"`
			}
		case "common2":
			q.Query = noun(nouns) + " " + noun(nouns)
		case "mixed3":
			q.Query = rare() + " " + rare() + " " + noun(nouns)
		case "question":
			q.Query = fmt.Sprintf("why did the %s %s %s fail with %s", noun(60), noun(60), rare(), pick(r, failures))
		case "error":
			q.Query = pick(r, failures)
		case "path":
			q.Query, _, _ = strings.Cut(pick(r, v.lines), ":")
		case "rare1":
			q.Query = rare()
		case "miss":
			q.Query = fmt.Sprintf("qqzz%05d nothing-here", i)
		case "unicode":
			q.Query = pick(r, nonASCII)
		}
		out[i] = q
	}
	return out
}
