package lexis

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A Term is one thing a query asks for: a word, an identifier by its parts, or a
// run of characters of a script written without spaces.
type Term struct {
	Text   string   // as the query has it, lower-cased: what is shown to the caller
	Tokens []string // running tokens in order; a document has the term where they follow each other
	Whole  string   // an extra token that also shows the term (camelCase, C++), or ""
	Exact  bool     // only Whole shows the term: the tokens alone would find too much
	Pairs  []string // character pairs, in order, that find a run of characters faster
	Stop   bool     // too common to ask for alone
	// Fields are the words of a term of several (a path, a host name). A document in which a word is written with capitals inside (GitHub.com)
	// has its parts where the word stands, and the whole word only among the extras: such a
	// document holds all fields, and its text tells whether they stand together.
	Fields []Field
}

// A Field is one word of a [Term] of several, lower-case.
type Field struct {
	Word string // with its ending, as among the extras
	Stem string // its running token
}

// stopWords are English words that say nothing about what is looked for.
var stopWords = map[string]bool{}

func init() {
	for _, w := range strings.Fields("a an and are as at be by did do does for from how i in is it of on or should the to was we what when where which with") {
		stopWords[w] = true
	}
}

// Query gives the terms of a query text in order, each once. A text without any
// letter or digit gives none.
func (t *Tokenizer) Query(text string) []Term {
	var terms []Term
	for _, word := range words(text) {
		t.out, t.extras, t.n = nil, t.extras[:0], 0
		t.walk(word)
		if t.n == 0 {
			continue
		}
		term := Term{Text: strings.ToLower(strings.TrimFunc(word, func(r rune) bool {
			return kindOf(r) == other && r != '+' && r != '#'
		}))}
		term.Tokens = strings.Split(string(t.out), " ")
		for _, x := range strings.Fields(string(t.extras)) {
			switch {
			case strings.HasSuffix(x, plus) || strings.HasSuffix(x, hash):
				term.Whole, term.Exact = x, term.Exact || len(term.Tokens) == 1
			case isASCII(x):
				if term.Whole == "" && len(term.Tokens) > 1 {
					term.Whole = x
				}
			default:
				term.Pairs = append(term.Pairs, x)
			}
		}
		if len(term.Pairs) > 0 && len(term.Pairs) != len(term.Tokens)-1 {
			term.Pairs = nil // mixed scripts: the running tokens alone
		}
		if isASCII(term.Text) && !term.Exact {
			if f := strings.FieldsFunc(term.Text, func(r rune) bool { return class[r] == 0 }); len(f) > 1 {
				for _, w := range f {
					term.Fields = append(term.Fields, Field{w, strings.Join(t.Tokens(w), " ")})
				}
				if isASCII(term.Whole) {
					term.Whole = "" // it is that of one field
				}
			}
		}
		// A lower-case word can be a whole camelCase word of a document.
		if term.Whole == "" && len(term.Tokens) == 1 && isASCII(term.Text) && term.Text != term.Tokens[0] && len(term.Text) <= MaxToken {
			term.Whole = term.Text
		}
		if term.Whole != "" && strings.ContainsFunc(term.Whole, func(r rune) bool { return r < utf8.RuneSelf && class[r] == 0 }) {
			term.Whole = "" // more than one word: its parts find it
		}
		term.Stop = stopWords[term.Text]
		if !slices.ContainsFunc(terms, func(o Term) bool { return o.Text == term.Text }) {
			terms = append(terms, term)
		}
	}
	t.out = nil
	return terms
}

// Tokens gives the running tokens of text in order.
func (t *Tokenizer) Tokens(text string) []string {
	t.out, t.extras, t.n = nil, t.extras[:0], 0
	t.walk(text)
	if t.n == 0 {
		return nil
	}
	s := strings.Split(string(t.out), " ")
	t.out = nil
	return s
}

// words cuts a query at white space and, inside a run of characters without
// spaces, where the script changes, so that each piece is one term.
func words(text string) []string {
	var out []string
	for _, f := range strings.Fields(text) {
		start, was := 0, other
		for i, r := range f {
			k := kindOf(r)
			if k != other && was != other && k != was {
				out = append(out, f[start:i])
				start = i
			}
			if k != other {
				was = k
			}
		}
		out = append(out, f[start:])
	}
	return out
}
