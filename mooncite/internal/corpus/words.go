package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

// common are the words most sentences are made of; the first ones are the most
// frequent by far.
var common = strings.Fields(`build test error cache server client request response token index query parser schema field value
file path config option flag thread lock queue worker retry timeout buffer stream socket header payload table row
column migrate deploy branch commit merge rebase review patch refactor function method class module package import
export type string number array object map list tree node edge graph cursor offset range limit window batch chunk
hash digest verify sign encode decode compress snapshot restore backup replica leader follower quorum metric trace
log debug warn panic crash leak memory heap stack frame kernel driver render layout widget button style theme color
because after before while should could would maybe probably instead without between against during please thanks
the a and of to in is it that for on with as this are be was`)

var (
	syllables = strings.Fields("ba be bi bo bu da de di do du ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu pa pe pi po ra re ri ro ru sa se si so ta te ti to tu va ve vi vo za zo")
	failures  = []string{"ECONNRESET", "EADDRINUSE", "ENOSPC", "SIGSEGV", "TypeError", "KeyError", "E0382", "TS2345", "SQLITE_BUSY", "context deadline exceeded"}
	suffixes  = []string{"go", "ts", "rs", "py", "c", "sql", "toml", "yaml"}
	nonASCII  = []string{"naïve café", "größe prüfen", "日本語のテスト", "проверка индекса", "emoji 🚀 ok"}
	areas     = []string{"api", "web", "cli", "core", "infra", "docs"}
)

// nouns is how many of the common words serve in queries: those before "because".
const nouns = 90

// vocabulary is the stock all text is drawn from. It is made once and only read.
type vocabulary struct {
	rare      []string // invented words, the first ones more frequent
	sentences []string
	lines     []string // "path:line: sentence", as tools print them
	projects  []string // working directories
	planted   []string // phrases of common words, see plant
}

func newVocabulary(r *rand.Rand, phrases int) *vocabulary {
	v := &vocabulary{}
	seen := make(map[string]bool)
	for range 40000 {
		var b strings.Builder
		for range between(r, 3, 5) {
			b.WriteString(pick(r, syllables))
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			v.rare = append(v.rare, w)
		}
	}
	for range 60000 {
		v.sentences = append(v.sentences, v.sentence(r))
	}
	for range 30000 {
		v.lines = append(v.lines, fmt.Sprintf("%s:%d: %s", v.path(r, 3000), between(r, 1, 900), pick(r, v.sentences)))
	}
	for range 24 {
		v.projects = append(v.projects, "/home/dev/code/"+pick(r, v.rare[:2000])+"-"+pick(r, areas))
	}
	v.plant(r, phrases)
	return v
}

// word draws one word: mostly common ones, the rest from the long tail.
func (v *vocabulary) word(r *rand.Rand) string {
	switch p := r.Float64(); {
	case p < .35:
		return common[pareto(r, 1.1)%len(common)]
	case p < .72:
		return pick(r, common)
	}
	return v.rare[min(len(v.rare)-1, pareto(r, .55))]
}

func (v *vocabulary) path(r *rand.Rand, dirs int) string {
	return "src/" + pick(r, v.rare[:dirs]) + "/" + pick(r, v.rare[:9000]) + "." + pick(r, suffixes)
}

func (v *vocabulary) sentence(r *rand.Rand) string {
	words := make([]string, between(r, 6, 22))
	for i := range words {
		words[i] = v.word(r)
	}
	at := &words[r.IntN(len(words))]
	switch p := r.Float64(); {
	case p < .10:
		*at = pick(r, failures)
	case p < .22:
		*at = v.path(r, 4000)
	case p < .30:
		*at = "`" + pick(r, common) + "_" + pick(r, v.rare[:9000]) + "(" + pick(r, common) + ")`"
	case p < .32:
		*at = pick(r, nonASCII)
	}
	return capital(strings.Join(words, " ")) + pick(r, []string{".", ".", ".", "?", ":"})
}

// plant chooses phrases of six to nine common words so that no three neighbouring
// words of them are neighbours in any sentence. A sentence has six words at least,
// so a run of text that held a phrase by chance would cross one sentence end and
// have three of its words on one side of it: there is no such run.
func (v *vocabulary) plant(r *rand.Rand, n int) {
	number := make(map[string]int, len(common))
	for i, w := range common {
		number[w] = i + 1
	}
	size := len(common) + 1
	used := make([]bool, size*size*size)
	mark := func(words []string) {
		a, b := 0, 0
		for _, w := range words {
			c := number[w]
			if a > 0 && b > 0 && c > 0 {
				used[(a*size+b)*size+c] = true
			}
			a, b = b, c
		}
	}
	for _, s := range v.sentences {
		mark(strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }))
	}
next:
	for len(v.planted) < n {
		words := make([]string, between(r, 6, 9))
		for i, k := range r.Perm(len(common))[:len(words)] {
			words[i] = common[k]
		}
		for i := 2; i < len(words); i++ {
			if used[(number[words[i-2]]*size+number[words[i-1]])*size+number[words[i]]] {
				continue next
			}
		}
		mark(words)
		v.planted = append(v.planted, strings.Join(words, " "))
	}
}

// pareto draws a whole number from 1 up with a heavy tail.
func pareto(r *rand.Rand, shape float64) int {
	return int(min(math.Pow(1-r.Float64(), -1/shape), 1e9))
}

// logNormal draws a whole number whose logarithm is normally distributed.
func logNormal(r *rand.Rand, mu, sigma float64) int { return int(math.Exp(mu + sigma*r.NormFloat64())) }

func between(r *rand.Rand, lo, hi int) int { return lo + r.IntN(hi-lo+1) }

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func capital(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// cut shortens s to at most n bytes, whole words only, so that no word of a
// phrase can arise from a part of another.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if i := strings.LastIndexByte(s[:n], ' '); i > 0 {
		return s[:i]
	}
	return s
}
