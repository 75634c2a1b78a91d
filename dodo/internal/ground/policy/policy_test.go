package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/policy"
)

// TestMatrix walks every class and trust, known and unknown, against the table of the
// contract.
func TestMatrix(t *testing.T) {
	table := map[contract.Class]string{ // inspect, edit, trusted, unknown
		contract.ClassRead:       "allow allow allow allow",
		contract.ClassPlan:       "allow allow allow allow",
		contract.ClassJobControl: "allow allow allow allow",
		contract.ClassMutate:     "ask allow allow ask",
		contract.ClassExec:       "ask ask allow ask",
		"":                       "ask ask ask ask",
		"READ":                   "ask ask ask ask",
	}
	for class, row := range table {
		for i, trust := range []contract.Trust{contract.TrustInspect, contract.TrustEdit, contract.TrustTrusted, "Trusted"} {
			if got, want := policy.Decide(class, trust), strings.Fields(row)[i]; string(got) != want {
				t.Errorf("class %q, trust %q: %s, want %s", class, trust, got, want)
			}
		}
	}
}

// TestTrust walks saved trust, access mode and run mode.
func TestTrust(t *testing.T) {
	for _, saved := range []contract.Trust{contract.TrustInspect, contract.TrustEdit, contract.TrustTrusted, "", "all"} {
		for _, mode := range []contract.AccessMode{contract.AccessPersonal, contract.AccessManaged, "", "other"} {
			for _, run := range []bool{false, true} {
				want := saved
				switch {
				case run || mode == contract.AccessPersonal:
					want = contract.TrustTrusted
				case saved == "" || saved == "all":
					want = contract.TrustInspect
				}
				if got := policy.Trust(saved, mode, run); got != want {
					t.Errorf("saved %q, mode %q, run %v: %s, want %s", saved, mode, run, got, want)
				}
			}
		}
	}
}

// TestScopes walks every set of scopes against every grant of the owner, in each mode:
// nobody ever has more than their own, and a client in managed mode no more than granted.
func TestScopes(t *testing.T) {
	var sets []contract.Scopes
	for bits := range 8 {
		var s []contract.Scope
		for i, x := range contract.AllScopes {
			if bits&(1<<i) != 0 {
				s = append(s, x)
			}
		}
		sets = append(sets, contract.NewScopes(s...))
	}
	for _, own := range sets {
		for _, acl := range sets {
			for _, mode := range []contract.AccessMode{contract.AccessPersonal, contract.AccessManaged, "", "x"} {
				for _, owner := range []bool{false, true} {
					got := policy.Scopes(contract.Principal{Scopes: append(own, "dodo:admin"), Owner: owner}, mode, acl)
					want := own
					if !owner && mode != contract.AccessPersonal {
						want = own.And(acl)
					}
					if !slices.Equal(got, want) {
						t.Errorf("own %v, granted %v, mode %q, owner %v: %v, want %v", own, acl, mode, owner, got, want)
					}
				}
			}
		}
	}
}

func ExampleDecide() {
	fmt.Println(policy.Decide(contract.ClassMutate, contract.TrustInspect))
	// Output: ask
}
