package lexis

// A Sieve tells which words of a text could give one of some tokens. Telling that by a
// word's first letters costs a small part of making its token.
type Sieve struct {
	one   [256]bool // by first letter: of tokens short enough to be another word's irregular stem
	two   [1 << 10]bool
	three [1 << 12]bool
}

// How many letters at its end a stem may differ from every word it stands for, as
// "able" does from "ability" (Porter 2).
const changed = 2

// NewSieve makes a sieve for running tokens as [Tokenizer.Query] and [Tokenizer.Tokens]
// give them.
func NewSieve(tokens []string) *Sieve {
	s := &Sieve{}
	for _, t := range tokens {
		switch n := len(t) - changed; {
		case len(t) == 0:
		case n >= 3:
			s.three[three(t)] = true
		case n == 2:
			s.two[two(t)] = true
		default:
			s.one[t[0]] = true
		}
	}
	return s
}

func two(w string) uint { return uint(lowered[w[0]])<<5&(1<<10-1) ^ uint(lowered[w[1]]) }

func three(w string) uint {
	return (uint(lowered[w[0]])<<8 ^ uint(lowered[w[1]])<<4 ^ uint(lowered[w[2]])) & (1<<12 - 1)
}

// may reports whether an ASCII word could give one of the tokens.
func (s *Sieve) may(word string) bool {
	return s.one[lowered[word[0]]] || len(word) > 1 && s.two[two(word)] || len(word) > 2 && s.three[three(word)]
}

// gap stands in sieved token text for words left out. No text gives it.
const gap = 0

// Sieved is [Tokenizer.Document] without most of the words that the sieve says can give
// none of its tokens: the tokens stand as often, and as near to each other, as they would
// there. It returns the number of running tokens of the whole text.
func (t *Tokenizer) Sieved(dst []byte, text string, sieve *Sieve) ([]byte, int) {
	t.sieve = sieve
	defer func() { t.sieve = nil }()
	t.out, t.extras, t.n = dst, t.extras[:0], 0
	return t.document(text)
}

// leave leaves a word out.
func (t *Tokenizer) leave() {
	if t.n > 0 {
		if t.out[len(t.out)-1] == gap {
			t.n++
			return
		}
		t.out = append(t.out, ' ')
	}
	t.out = append(t.out, gap)
	t.n++
}
