package engine

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/index"
	"localmcp/mooncite/internal/lexis"
)

// wanted is a query taken apart.
type wanted struct {
	raw    string // trimmed
	quoted bool
	exact  string       // folded text that an exact match holds
	terms  []lexis.Term // what is looked for
	phrase []string     // running tokens of the exact text
	cut    bool         // there were more terms than are looked for
}

// maxTerms is how many terms of a query are looked for.
const maxTerms = 64

var quotes = map[rune]rune{'"': '"', '\'': '\'', '“': '”', '‘': '’'}

// tokenizers are not in use; they keep the stems they remember between requests. A
// sync.Pool would lose them at every collection.
var tokenizers = make(chan *lexis.Tokenizer, 4)

func takeTokenizer() *lexis.Tokenizer {
	select {
	case t := <-tokenizers:
		return t
	default:
		return new(lexis.Tokenizer)
	}
}

func giveTokenizer(t *lexis.Tokenizer) {
	select {
	case tokenizers <- t:
	default:
	}
}

// parseQuery takes a query apart. Stop words are looked for only when there is
// nothing else.
func parseQuery(text string) *wanted {
	tk := takeTokenizer()
	defer giveTokenizer(tk)
	w := &wanted{raw: strings.TrimSpace(text)}
	inner := w.raw
	r := []rune(w.raw)
	if len(r) > 2 && quotes[r[0]] == r[len(r)-1] && r[len(r)-1] != 0 {
		inner = strings.TrimSpace(string(r[1 : len(r)-1]))
		w.quoted = true
	}
	w.exact = folded(inner).text
	w.phrase = tk.Tokens(inner)
	all := tk.Query(inner)
	for _, t := range all {
		if !t.Stop {
			w.terms = append(w.terms, t)
		}
	}
	if len(w.terms) == 0 {
		w.terms = all
	}
	if len(w.terms) > maxTerms {
		w.terms, w.cut = w.terms[:maxTerms], true
	}
	return w
}

func (w *wanted) names() []string {
	out := make([]string, 0, len(w.terms))
	for i := range w.terms {
		out = append(out, evidence.Visible(w.terms[i].Text))
	}
	return out
}

// How exactly a text holds the query.
const (
	notExact = iota
	wordExact
	textExact
)

// hit is a candidate with its span and how well it answers.
type hit struct {
	doc      int64
	span     *index.Span
	text     string
	src      *index.Source
	unit     *index.Unit
	direct   bool // the query is its citation
	metadata bool // the query is one of its identifiers
	echo     bool
	exact    int
	at       int // where in the text the match is, or -1
	matched  uint64
	coverage float64
	score    float64 // BM25
	copies   int
	twins    int
}

// strong, partial, weak.
func (h *hit) band() string {
	switch {
	case h.exact > notExact || h.metadata || h.coverage >= 0.6:
		return "strong"
	case h.coverage >= 0.25:
		return "partial"
	}
	return "weak"
}

func (h *hit) strong() bool { return h.band() == "strong" }

// A judge weighs texts against one query.
type judge struct {
	*wanted
	weights  []float64 // of the terms
	tokens   *lexis.Tokenizer
	buf      []byte
	sieve    *lexis.Sieve
	capitals bool          // the query has a word with capitals inside
	needles  [][2][]byte   // of each term: among running tokens, among extras
	fields   [][][2][]byte // of each term of several words: each word as it is, and its stem
	joined   []byte        // the phrase among running tokens
}

// readAtMost bounds the text of one span that is weighed, in bytes. What lies behind
// counts as the index found it.
const readAtMost = 64 << 10

func newJudge(w *wanted) *judge {
	j := &judge{wanted: w, tokens: takeTokenizer()}
	tokens := slices.Clone(w.phrase)
	for i := range w.terms {
		t := &w.terms[i]
		tokens = append(append(tokens, t.Tokens...), t.Whole)
		var fields [][2][]byte
		for _, f := range t.Fields {
			tokens = append(tokens, f.Stem, f.Word)
			fields = append(fields, [2][]byte{[]byte(" " + f.Word + " "), []byte(" " + f.Stem + " ")})
		}
		j.fields = append(j.fields, fields)
		j.capitals = j.capitals || t.Whole != "" && len(t.Tokens) > 1 || len(t.Fields) > 0 && len(t.Tokens) != len(t.Fields)
		j.weights = append(j.weights, 1)
		var needle [2][]byte
		if !t.Exact {
			needle[0] = []byte(" " + strings.Join(t.Tokens, " ") + " ")
		}
		if t.Whole != "" {
			needle[1] = []byte(" " + t.Whole + " ")
		}
		j.needles = append(j.needles, needle)
	}
	j.sieve = lexis.NewSieve(tokens)
	if len(w.phrase) > 0 {
		j.joined = []byte(" " + strings.Join(w.phrase, " ") + " ")
	}
	return j
}

// twin is a judge of the same query for another goroutine.
func (j *judge) twin() *judge {
	t := *j
	t.tokens, t.buf = takeTokenizer(), nil
	return &t
}

// close gives back what the judge borrowed.
func (j *judge) close() { giveTokenizer(j.tokens) }

// BM25's constants: how fast repetition saturates, how much length counts, and the
// tokens of a usual span.
const (
	saturation  = 1.2
	lengthShare = 0.6
	usualTokens = 160
)

// weigh judges a hit's text. known are the terms that the index found in it, phrase that
// it found the phrase: they tell of what lies behind the part that is read.
func (j *judge) weigh(h *hit, known uint64, phrase bool) {
	h.matched, h.score, h.at, h.exact = 0, 0, -1, notExact
	text, long := h.text, len(h.text) > readAtMost
	if long {
		text = strings.ToValidUTF8(text[:readAtMost], "")
	}
	var n int
	j.buf, n = j.tokens.Sieved(append(j.buf[:0], ' '), text, j.sieve)
	j.buf = append(j.buf, ' ')
	for i := range j.terms {
		tf := 0
		for _, needle := range j.needles[i] {
			if needle != nil {
				tf = max(tf, bytes.Count(j.buf, needle))
			}
		}
		if tf == 0 && (long && known>>i&1 == 1 || j.spelt(i, h.text)) {
			tf = 1
		}
		if tf > 0 {
			j.count(h, i, tf, n)
		}
	}
	if len(j.terms) > 0 {
		h.coverage = float64(bits.OnesCount64(h.matched)) / float64(len(j.terms))
	}
	words := len(j.phrase) > 0 && bytes.Contains(j.buf, j.joined) || long && phrase || len(j.phrase) == 1 && h.matched != 0
	if !words && h.coverage == 1 && (j.capitals || lexis.HasExtras(j.buf)) { // a word with capitals inside stands in parts
		if h.at = j.find(h.text); h.at >= 0 {
			h.exact = textExact
		}
		return
	}
	if words || len(j.phrase) == 0 || long {
		if h.at = j.find(h.text); h.at >= 0 {
			h.exact = textExact
		} else if words && len(j.phrase) > 1 {
			h.exact = wordExact
		}
	}
}

// spelt reports whether a text, whose token text is in buf, holds a term of several words
// as it is spelt but for capitals.
func (j *judge) spelt(term int, text string) bool {
	if len(j.fields[term]) == 0 {
		return false
	}
	for _, f := range j.fields[term] {
		if !bytes.Contains(j.buf, f[0]) && !bytes.Contains(j.buf, f[1]) {
			return false
		}
	}
	f := fold{text: lowerCase(text)}
	return f.find(j.terms[term].Text) >= 0
}

// count adds a term that a text of n tokens holds tf times.
func (j *judge) count(h *hit, term, tf, n int) {
	norm := saturation * (1 - lengthShare + lengthShare*float64(n)/usualTokens)
	h.matched |= 1 << term
	h.score += j.weights[term] * float64(tf) * (saturation + 1) / (float64(tf) + norm)
}

// find returns where text holds the exact text, or -1. Only a text that changes its length
// with its letter case has to be folded whole.
func (j *judge) find(text string) int {
	if lower := lowerCase(text); len(lower) == len(text) {
		f := fold{text: lower}
		return f.findSpaced(j.exact)
	}
	f := folded(text)
	return f.find(j.exact)
}

// locate sets where the excerpt of a hit is to be.
func (j *judge) locate(h *hit) {
	if h.at < 0 {
		f := folded(h.text)
		h.at = j.place(&f, h.matched)
	}
}

// place finds where the best matched term stands.
func (j *judge) place(f *fold, matched uint64) int {
	best := make([]int, 0, len(j.terms))
	for i := range j.terms {
		if matched>>i&1 == 1 {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(j.weights[b], j.weights[a]) })
	for _, i := range best {
		t := j.terms[i].Text
		if at := f.find(t); at >= 0 {
			return at
		}
		// Another form of the word, or other characters between its parts.
		for _, tok := range j.terms[i].Tokens {
			if at := strings.Index(f.text, tok); at >= 0 && at < len(f.at) {
				return int(f.at[at])
			}
		}
	}
	return -1
}

// boilerplate and dialogue in the order of the ranking.
func (h *hit) tier() int {
	boiler := h.span.Class == evidence.Boilerplate
	switch {
	case h.strong() && !boiler:
		return 0
	case h.strong():
		return 1
	case !boiler:
		return 2
	}
	return 3
}

// rank orders hits by strength: citations and identifiers, exact text, coverage,
// BM25 in steps of a quarter of the best, dialogue before tool traffic, BM25, time.
func rank(hits []*hit) {
	best := 0.0
	for _, h := range hits {
		best = math.Max(best, h.score)
	}
	step := func(h *hit) int {
		if best == 0 {
			return 0
		}
		return int(4 * h.score / best)
	}
	slices.SortStableFunc(hits, func(a, b *hit) int {
		return cmp.Or(
			compareBool(b.direct, a.direct), compareBool(b.metadata, a.metadata), compareBool(a.echo, b.echo),
			cmp.Compare(a.tier(), b.tier()), cmp.Compare(b.exact, a.exact), cmp.Compare(b.coverage, a.coverage),
			cmp.Compare(step(b), step(a)), cmp.Compare(a.span.Class, b.span.Class), cmp.Compare(b.score, a.score),
			cmp.Compare(b.span.Time, a.span.Time), cmp.Compare(a.doc, b.doc))
	})
}

// rankByTime orders hits by time, those without a time last; equal ones stay as they
// stand in their sources.
func rankByTime(hits []*hit, order index.Order) {
	slices.SortStableFunc(hits, func(a, b *hit) int {
		ta, tb := a.span.Time, b.span.Time
		if none := compareBool(ta == evidence.NoTime, tb == evidence.NoTime); none != 0 {
			return none
		}
		if order == index.Newest {
			ta, tb = tb, ta
		}
		return cmp.Or(cmp.Compare(ta, tb), strings.Compare(a.src.StoredPath(), b.src.StoredPath()), cmp.Compare(a.doc, b.doc))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// fold takes later copies of a turn out of ranked hits and counts them in the one
// that stays: spans of one session with the same text, and the same turn in another
// session. Of several sessions' copies the oldest original stays.
func foldCopies(hits []*hit) []*hit {
	byText := map[string][]*hit{}
	var out []*hit
next:
	for _, h := range hits {
		if h.direct || h.metadata {
			out = append(out, h)
			continue
		}
		for i, k := range byText[h.text] {
			if k.span.Role != h.span.Role {
				continue
			}
			same := k.src.ID == h.src.ID && k.unit.Session == h.unit.Session
			if same && k.span.Kind == h.span.Kind && k.span.Off == h.span.Off {
				k.twins++
				continue next
			}
			if !same && sameTurn(k, h) {
				if better(h, k) {
					h.copies, h.twins = k.copies+1, k.twins
					byText[h.text][i] = h
					out[slices.Index(out, k)] = h
				} else {
					k.copies++
				}
				continue next
			}
		}
		byText[h.text] = append(byText[h.text], h)
		out = append(out, h)
	}
	return out
}

// sameTurn reports whether two spans with the same text and role are one turn.
func sameTurn(a, b *hit) bool {
	switch {
	case a.span.Class == evidence.Boilerplate && b.span.Class == evidence.Boilerplate:
		return true
	case a.span.Copy || b.span.Copy:
		return true
	case a.span.Entry == b.span.Entry:
		return true
	case a.span.Time == b.span.Time && a.span.Time != evidence.NoTime:
		return true
	}
	// A fork that carries neither id nor time over names where it came from.
	return related(a, b) || related(b, a)
}

func related(child, parent *hit) bool {
	return child.src.Origin == parent.src.Origin && child.src.Info.Parent != "" && child.src.Info.Parent == parent.unit.Session
}

// better reports whether a is the original rather than b.
func better(a, b *hit) bool {
	if a.span.Copy != b.span.Copy {
		return b.span.Copy
	}
	if related(b, a) != related(a, b) {
		return related(b, a)
	}
	if a.src.Present != b.src.Present {
		return a.src.Present
	}
	if a.span.Time != b.span.Time {
		return a.span.Time < b.span.Time
	}
	return a.doc < b.doc
}
