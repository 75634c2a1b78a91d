package contract_test

import (
	"context"
	"encoding/json"
	"testing"

	"localmcp/dodo/internal/contract"
)

type nothing struct{}

// TestClassesOfConstructors: what an operation may do at most decides how it is made.
func TestClassesOfConstructors(t *testing.T) {
	answer := func(context.Context, contract.Call, nothing) (a contract.Answer[nothing], err error) { return a, nil }
	act := func(context.Context, contract.Call, nothing) (a contract.Act[nothing], err error) { return a, nil }
	for class, acts := range map[contract.Class]bool{
		contract.ClassRead: false, contract.ClassPlan: false, contract.ClassJobControl: false, contract.ClassMutate: true, contract.ClassExec: true,
	} {
		def := contract.Def{Name: "o", Title: "O", Doc: "O.", Scope: contract.ScopeExec, Class: class}
		for name, c := range map[string]struct {
			build func() contract.Op
			fits  bool
		}{
			"Read":    {func() contract.Op { return contract.Read(def, answer) }, !acts},
			"Propose": {func() contract.Op { return contract.Propose(def, answer) }, acts},
			"Do":      {func() contract.Op { return contract.Do(def, act) }, acts},
		} {
			func() {
				defer func() {
					if refused := recover() != nil; refused == c.fits {
						t.Errorf("%s of class %s: refused is %v", name, class, refused)
					}
				}()
				c.build()
			}()
		}
	}
	b, err := contract.Propose(contract.Def{Name: "o", Title: "O", Doc: "O.", Class: contract.ClassExec}, answer).Bind(json.RawMessage("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if p, err := b.Prepare(t.Context(), contract.Call{}); err != nil || p.Done == nil || p.Run != nil {
		t.Errorf("%+v, %v: the owner would be asked", p, err)
	}
}
