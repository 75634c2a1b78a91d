package lexis_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"localmcp/mooncite/internal/lexis"
)

// tk is used by one test at a time: to make the table of stems anew each time takes long.
var tk lexis.Tokenizer

// sieved compares what the token text of a document and its sieved form say of a query.
func sieved(t *testing.T, text, query string) {
	t.Helper()
	phrase := tk.Tokens(query)
	needles, tokens := []string{strings.Join(phrase, " ")}, phrase
	for _, q := range tk.Query(query) {
		needles = append(needles, strings.Join(q.Tokens, " "), q.Whole)
		tokens = append(append(tokens, q.Tokens...), q.Whole)
	}
	whole, n := tk.Document([]byte(" "), text)
	part, m := tk.Sieved([]byte(" "), text, lexis.NewSieve(tokens))
	if n != m {
		t.Errorf("%q in %q: %d running tokens, said %d", query, text, n, m)
	}
	for _, s := range needles {
		if s == "" {
			continue
		}
		needle := []byte(" " + s + " ")
		if a, b := bytes.Count(append(whole, ' '), needle), bytes.Count(append(part, ' '), needle); a != b {
			t.Errorf("%q in %q: %d times %q, sieved %d: %q", query, text, a, s, b, part)
		}
	}
}

func FuzzSieved(f *testing.F) {
	f.Add("before parseConfigFile(src/a.go) C++ 日本 naïve", "parseconfigfile")
	f.Add("dying of tries and abilities", "die ability try")
	f.Add("a b\x00c d", "b c")
	f.Fuzz(func(t *testing.T, text, query string) { sieved(t, text, query) })
}

// Every form of a word is found by every other form that has the same stem.
func TestSieveKeepsForms(t *testing.T) {
	endings := []string{"", "s", "es", "ies", "y", "e", "ed", "eed", "ing", "ingly", "edly", "ly", "li", "ied", "er", "or", "est", "ment", "ness", "ful", "fulness", "less", "lessness", "able", "ability",
		"abilities", "ably", "ible", "ibility", "ance", "ancy", "ence", "ency", "ation", "ations", "ational", "ator", "ize", "izer", "ization", "izing", "al", "alism", "ality", "ally", "ous", "ously",
		"ousness", "ive", "ively", "iveness", "ivity", "icate", "ical", "icity", "ic", "ate", "ated", "ating", "tional", "tion", "ogy", "ogi", "ism", "ist", "iti", "ll", "lled", "tt", "tting"}
	roots := []string{"di", "li", "ti", "sk", "ski", "idl", "gent", "ugl", "earl", "onl", "sing", "abl", "cap", "cre", "hop", "hopp", "fal", "fall", "gener", "commun", "arsen", "happ", "relat", "valid", "digit",
		"oper", "feud", "decis", "hesit", "conform", "radic", "vietnam", "analog", "triplic", "good", "goodn", "reviv", "allow", "infer", "adjust", "replac", "adopt", "act", "effect", "bowdler", "luxuriat", "probat", "cont"}
	r := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		b := make([]byte, 1+r.IntN(5))
		for i := range b {
			b[i] = "aeiouybdglmnprstvz"[r.IntN(18)]
		}
		roots = append(roots, string(b))
	}
	for _, root := range roots {
		var forms []string
		for _, e := range endings {
			forms = append(forms, root+e)
		}
		text := strings.Join(forms, " ")
		for _, f := range forms {
			sieved(t, text, f)
		}
	}
	for _, w := range strings.Fields("dying lying tying skis skies idly gently ugly early only singly sky news howe atlas cosmos bias andes inning outing canning herring earring proceed exceed succeed") {
		sieved(t, "dying lying tying die lie tie skis skies ski sky idl gentl ugli earli onli singl inning outing canning proceed exceed succeed", w)
	}
}
