// Package oauth is the authorization server that is built into dodo, and the verifier of
// the tokens that it gave.
package oauth
