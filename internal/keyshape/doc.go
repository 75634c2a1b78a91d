// Package keyshape knows the shapes of keys that services publish, so that a leaked one can
// be recognised and masked.
//
// What it is: Find and Mask over a text, for both programs.
//
// What one may rely on: a key is masked whole, also where a piece of text cuts it; text that
// only resembles a key stays; time grows with the text.
//
// What it deliberately does not do: it knows no secrets of other shapes, such as passwords
// in words, and it changes nothing but what it is given.
package keyshape
