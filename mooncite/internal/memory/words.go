package memory

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"localmcp/internal/sqlitedb"
	"localmcp/mooncite/internal/lexis"
)

const factTokens = "tokens" // lexis.Version that made the words

// Bounds of a search.
const (
	maxTerms   = 64
	perTerm    = 512 // newest memories with a term that are looked at
	maxRanked  = 200 // memories that are read and ranked
	usualWords = 60  // tokens of a usual interpretation
)

func staleWords(ctx context.Context, c *sqlitedb.Conn) (bool, error) {
	var v string
	_, err := c.Row(ctx, "SELECT value FROM facts WHERE key = ?", []any{factTokens}, &v)
	return v != strconv.Itoa(lexis.Version), err
}

// reindex makes the words anew from the interpretations, for another version of lexis.
func (s *Store) reindex(ctx context.Context, c *sqlitedb.Conn) error {
	if _, err := c.Exec(ctx, "INSERT INTO words (words) VALUES ('delete-all')"); err != nil {
		return err
	}
	texts := map[int64]string{}
	if err := c.Each(ctx, "SELECT m.doc, r.interpretation FROM memories AS m JOIN revisions AS r ON r.memory = m.id AND r.revision = m.head", nil, func(scan scanner) error {
		var doc int64
		var text string
		if err := scan(&doc, &text); err != nil {
			return err
		}
		texts[doc] = text
		return nil
	}); err != nil {
		return err
	}
	for doc, text := range texts {
		if err := s.addWords(ctx, c, doc, text); err != nil {
			return err
		}
	}
	_, err := c.Exec(ctx, "INSERT OR REPLACE INTO facts VALUES (?, ?)", factTokens, strconv.Itoa(lexis.Version))
	return err
}

// addWords makes a memory findable by a text.
func (s *Store) addWords(ctx context.Context, c *sqlitedb.Conn, doc int64, text string) error {
	tokens, _ := s.tokens(text)
	_, err := c.Exec(ctx, "INSERT INTO words (rowid, tokens) VALUES (?, ?)", doc, tokens)
	return err
}

func dropWords(ctx context.Context, c *sqlitedb.Conn, doc int64) error {
	_, err := c.Exec(ctx, "DELETE FROM words WHERE rowid = ?", doc)
	return err
}

func (s *Store) tokens(text string) (string, int) {
	s.words.Lock()
	defer s.words.Unlock()
	b, n := s.lexis.Document(nil, text)
	return string(b), n
}

// terms takes a query apart. Stop words are looked for only when there is nothing else.
func (s *Store) terms(query string) []lexis.Term {
	s.words.Lock()
	defer s.words.Unlock()
	all := s.lexis.Query(query)
	terms := slices.DeleteFunc(slices.Clone(all), func(t lexis.Term) bool { return t.Stop })
	if len(terms) == 0 {
		terms = all
	}
	return terms[:min(len(terms), maxTerms)]
}

// needles are the runs of tokens that show a term.
func needles(t *lexis.Term) []string {
	var out []string
	if !t.Exact {
		out = append(out, strings.Join(t.Tokens, " "))
	}
	if t.Whole != "" {
		out = append(out, t.Whole)
	}
	return out
}

// visible is what a recall may see.
type visible struct {
	project  string // "": any
	archived bool   // archived ones too
	invalid  bool   // quarantined ones too
}

// A found is a memory that holds terms of a query.
type found struct {
	doc     int64
	matched []string // terms
	score   float64
}

// search finds memories by the terms of their current revisions: of each term the
// newest [perTerm], of these the [maxRanked] with the most telling terms. cut says that
// there were more.
func search(ctx context.Context, c *sqlitedb.Conn, terms []lexis.Term, v visible) (list []found, weights []float64, cut bool, err error) {
	var total int64
	if _, err := c.Row(ctx, "SELECT count(*) FROM memories", nil, &total); err != nil {
		return nil, nil, false, err
	}
	where := visibleSQL("m", "r")
	by := map[int64]*found{}
	for i := range terms {
		var or []string
		for _, n := range needles(&terms[i]) {
			or = append(or, `"`+n+`"`) // tokens hold no quotation marks
		}
		var docs []int64
		args := append(append([]any{strings.Join(or, " OR ")}, v.args()...), perTerm)
		if err := c.Each(ctx, `SELECT words.rowid FROM words JOIN memories AS m ON m.doc = words.rowid JOIN revisions AS r ON r.memory = m.id AND r.revision = m.head
			WHERE words MATCH ? AND `+where+` ORDER BY words.rowid DESC LIMIT ?`, args, func(scan scanner) error {
			var doc int64
			err := scan(&doc)
			docs = append(docs, doc)
			return err
		}); err != nil {
			return nil, nil, false, err
		}
		cut = cut || len(docs) == perTerm
		n := float64(len(docs))
		weight := math.Log(1 + (float64(total)-n+.5)/(n+.5))
		weights = append(weights, weight)
		for _, doc := range docs {
			if by[doc] == nil {
				by[doc] = &found{doc: doc}
			}
			by[doc].matched = append(by[doc].matched, terms[i].Text)
			by[doc].score += weight
		}
	}
	for _, f := range by {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.doc, a.doc)) })
	if len(list) > maxRanked {
		list, cut = list[:maxRanked], true
	}
	return list, weights, cut, nil
}

// visibleSQL narrows memories m and revisions r to a scope; v.args are its arguments.
func visibleSQL(m, r string) string {
	return "(? OR " + m + ".archived IS NULL) AND (? = '' OR " + r + ".project IS NULL OR " + r + ".project = ?)"
}

func (v visible) args() []any { return []any{v.archived, v.project, v.project} }

// BM25's constants: how fast repetition saturates and how much length counts.
const (
	saturation  = 1.2
	lengthShare = 0.6
)

// weigh scores a text by BM25.
func (s *Store) weigh(text string, terms []lexis.Term, weights []float64) float64 {
	tokens, n := s.tokens(text)
	tokens = " " + tokens + " "
	norm := saturation * (1 - lengthShare + lengthShare*float64(n)/usualWords)
	score := 0.0
	for i := range terms {
		tf := 0
		for _, needle := range needles(&terms[i]) {
			tf = max(tf, strings.Count(tokens, " "+needle+" "))
		}
		score += weights[i] * float64(tf) * (saturation + 1) / (float64(tf) + norm)
	}
	return score
}

// band says how strongly a share of the terms matches.
func band(matched, terms int) string {
	switch share := float64(matched) / float64(terms); {
	case share >= 0.6:
		return "strong"
	case share >= 0.25:
		return "partial"
	}
	return "weak"
}
