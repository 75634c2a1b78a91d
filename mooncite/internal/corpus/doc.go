// Package corpus writes invented conversation histories for measuring and testing.
//
// What it is: a generator that fills a HOME with session files of all five origins,
// each where its client would leave it, with known queries and known answers; and
// two ways to make such a history grow as the clients make it grow ([Append],
// [AddConversation]).
//
// What one may rely on: the same [Config] gives the same bytes on every machine;
// the total is within a few per cent of what was asked; every line is valid JSON
// in the shape of its origin; a planted phrase ([Planted]) is made of very common
// words only, yet its sequence of words stands in the whole corpus exactly once
// (Codex writes each turn twice, so there it stands twice in one turn); needles
// and planted phrases stand only in dialogue, never in what is not indexed.
// Output is streamed: memory does not grow with the size of the corpus.
//
// What it deliberately does not do: it holds no real text and no damaged input
// (the parsers' own tests have that), and nothing of it is in the product.
package corpus
