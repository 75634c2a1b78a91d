// Package lexis decides what a word is: it turns text into the tokens that the
// index stores and a query into the terms that can find them.
//
// What it is: one tokenizer for both sides, so that what is written can be found.
// The token text of a document is a line of tokens parted by spaces, in the order
// of the text: words folded (case, Latin diacritics, width) and stemmed,
// identifiers by their parts (camelCase, snake_case, paths, dots and hyphens),
// Chinese, Japanese, Korean, Thai and their like by characters. Behind a mark
// follow the extras: whole camelCase words, words with + or # behind them (C++),
// and pairs of neighbouring characters of those scripts.
//
// What one may rely on: a phrase of the text is a phrase of its tokens; tokens
// hold only lower-case ASCII letters, digits and non-ASCII characters, so that
// FTS5's ascii tokenizer reads them back unchanged; the same text gives the same
// tokens for ever under one [Version].
//
// What it deliberately does not do: it ranks nothing, it knows no language but
// English endings, and it drops no stop word from a document.
package lexis
