package gate_test

import (
	"context"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
)

// TestFollowHasNoTurn: while a call waits for what it started, others act, and what it
// answers then is what the caller and the audit get.
func TestFollowHasNoTurn(t *testing.T) {
	w := newWorld(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	w.ops["wait"] = contract.Do(contract.Def{Name: "wait", Title: "T", Doc: "D.", Gateway: "dodo_exec", Scope: contract.ScopeExec, Class: contract.ClassExec},
		func(context.Context, contract.Call, in) (contract.Act[out], error) {
			return contract.Act[out]{
				Summary: "wait",
				Run: func(context.Context) (answer, error) {
					close(begun)
					return answer{Data: out{Text: "begun"}, Ref: "job_1"}, nil
				},
				Follow: func(_ context.Context, a answer) (answer, error) {
					select {
					case <-goOn:
						a.Data.Text += ", ended"
					case <-time.After(20 * time.Second):
						a.Data.Text += ", alone"
					}
					return a, nil
				},
			}, nil
		})
	ended := make(chan *contract.Reply)
	go func() { ended <- w.call("wait", `{"text":"x"}`) }()
	<-begun
	if r := w.call("change", `{"text":"meanwhile"}`); !r.OK {
		t.Fatalf("%+v", r.Error)
	}
	close(goOn)
	if r := <-ended; !r.OK || (*r.Data).(out).Text != "begun, ended" {
		t.Errorf("%+v", r)
	}
}
