package contract

import (
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Canonical writes a value as canonical JSON: members sorted at every level, absent ones
// left out, no white space.
func Canonical(v any) ([]byte, error) {
	raw, err := jsonv2.Marshal(v, jsonv2.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode for a digest: %w", err)
	}
	c := jsontext.Value(raw)
	if err := c.Canonicalize(jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("canonical form: %w", err)
	}
	return c, nil
}

// Digest is the hash of a value's canonical JSON.
func Digest(v any) (string, error) {
	c, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return Hash(c), nil
}
