// Package policy decides who may do what, as pure functions.
//
// What it is: the trust matrix, the effective scopes of a caller on a workspace, and the
// effective trust (contract 017, 018; spec dodo-behaviour 1.8).
//
// What one may rely on: every combination has an answer; what is unknown is decided as the
// least of its kind; nothing here ever gives a caller more than its own scopes.
//
// What it deliberately does not do: it reads no state and no clock, and it does not know
// which operation needs what.
package policy

import "localmcp/dodo/internal/contract"

// Decision is what happens to an action.
type Decision string

// The decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask" // the owner approves this very call, or it does not happen
)

// Decide is the trust matrix. A class or a trust that is unknown is asked about.
func Decide(class contract.Class, trust contract.Trust) Decision {
	switch class {
	case contract.ClassRead, contract.ClassPlan, contract.ClassJobControl:
		return Allow
	case contract.ClassMutate:
		if trust == contract.TrustEdit || trust == contract.TrustTrusted {
			return Allow
		}
	case contract.ClassExec:
		if trust == contract.TrustTrusted {
			return Allow
		}
	}
	return Ask
}

// Trust is the trust that counts: in personal mode, and in a run that the owner started as
// trusted, callers are trusted; otherwise what was saved for the workspace.
func Trust(saved contract.Trust, mode contract.AccessMode, run bool) contract.Trust {
	if run || mode == contract.AccessPersonal {
		return contract.TrustTrusted
	}
	t, _ := contract.ParseTrust(string(saved))
	return t
}

// Scopes are the scopes of a caller on a workspace. acl is what the owner granted its client
// there; it counts in managed mode, and never for the owner.
func Scopes(p contract.Principal, mode contract.AccessMode, acl contract.Scopes) contract.Scopes {
	own := contract.NewScopes(p.Scopes...)
	if p.Owner || mode == contract.AccessPersonal {
		return own
	}
	return own.And(acl)
}
