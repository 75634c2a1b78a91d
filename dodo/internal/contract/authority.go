package contract

import (
	"encoding/json"
	"slices"
	"strings"
)

// Scope is what a caller may ask for at all. Scopes are independent of each other.
type Scope string

// The scopes.
const (
	ScopeRead  Scope = "dodo:read"
	ScopeWrite Scope = "dodo:write"
	ScopeExec  Scope = "dodo:exec"
)

// AllScopes are the scopes in their order.
var AllScopes = []Scope{ScopeRead, ScopeWrite, ScopeExec}

// Scopes is a set of scopes, in the order of [AllScopes] and without doubles.
type Scopes []Scope

// NewScopes keeps what is a scope.
func NewScopes(list ...Scope) Scopes {
	var out Scopes
	for _, s := range AllScopes {
		if slices.Contains(list, s) {
			out = append(out, s)
		}
	}
	return out
}

// ParseScopes reads a list of words: a set with one that is unknown is no set at all.
func ParseScopes(words []string) (Scopes, bool) {
	var list []Scope
	for _, w := range words {
		s := Scope(w)
		if !slices.Contains(AllScopes, s) {
			return nil, false
		}
		list = append(list, s)
	}
	return NewScopes(list...), true
}

// DecodeScopes reads the stored form, a JSON list (contract 018). What cannot be read, or
// names something unknown, is no scope.
func DecodeScopes(stored string) Scopes {
	var words []string
	if json.Unmarshal([]byte(stored), &words) != nil {
		return nil
	}
	set, _ := ParseScopes(words)
	return set
}

// Encode writes the stored form.
func (s Scopes) Encode() string {
	if len(s) == 0 {
		return "[]"
	}
	return `["` + strings.Join(s.Words(), `","`) + `"]`
}

// Words are the scopes as strings.
func (s Scopes) Words() []string {
	words := make([]string, len(s))
	for i, x := range s {
		words[i] = string(x)
	}
	return words
}

// Has reports whether a scope is in the set.
func (s Scopes) Has(x Scope) bool { return slices.Contains(s, x) }

// And returns what both sets have.
func (s Scopes) And(o Scopes) Scopes {
	var both Scopes
	for _, x := range s {
		if o.Has(x) {
			both = append(both, x)
		}
	}
	return both
}

// Class is the kind of action a call is, for the decision whether the owner is asked.
type Class string

// The classes.
const (
	ClassRead       Class = "read"
	ClassPlan       Class = "plan"
	ClassMutate     Class = "mutate-files"
	ClassExec       Class = "exec"
	ClassJobControl Class = "job-control"
)

// Trust is how far the owner lets callers act in a workspace without being asked.
type Trust string

// The modes of trust, from the least on.
const (
	TrustInspect Trust = "inspect"
	TrustEdit    Trust = "edit"
	TrustTrusted Trust = "trusted"
)

// ParseTrust reads a mode. What is unknown is inspect, and not ok.
func ParseTrust(word string) (t Trust, ok bool) {
	switch t := Trust(word); t {
	case TrustInspect, TrustEdit, TrustTrusted:
		return t, true
	}
	return TrustInspect, false
}

// AccessMode is how authority is given to clients: to all the owner has let in
// (personal), or workspace by workspace (managed).
type AccessMode string

// The access modes.
const (
	AccessPersonal AccessMode = "personal"
	AccessManaged  AccessMode = "managed"
)

// ParseAccessMode reads a mode. What is unknown is managed, and not ok.
func ParseAccessMode(word string) (m AccessMode, ok bool) {
	switch m := AccessMode(word); m {
	case AccessPersonal, AccessManaged:
		return m, true
	}
	return AccessManaged, false
}

// Principal is who calls.
type Principal struct {
	GrantID  string // the id of the grant; of the local owner over stdio, LocalGrant
	ClientID string
	Scopes   Scopes // what it may ask for at most
	Owner    bool   // the owner, on this machine
}

// The names of the owner's own stdio client (spec dodo-behaviour 1.1).
const (
	LocalGrant  = "local-stdio"
	LocalClient = "stdio"
)

// LocalOwner is the principal of a stdio client.
func LocalOwner() Principal {
	return Principal{GrantID: LocalGrant, ClientID: LocalClient, Scopes: NewScopes(AllScopes...), Owner: true}
}
