package gate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
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

// TestNoTurn: what needs no turn is done while another call has it, by the same rules.
func TestNoTurn(t *testing.T) {
	w := newWorld(t)
	w.ops["steer"] = contract.Do(contract.Def{Name: "steer", Title: "T", Doc: "D.", Gateway: "dodo_exec", Scope: contract.ScopeExec, Class: contract.ClassExec},
		func(context.Context, contract.Call, in) (contract.Act[out], error) {
			return contract.Act[out]{Summary: "steer", NoTurn: true, Run: func(context.Context) (answer, error) { return answer{}, nil }}, nil
		})
	release, err := w.turns.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ended := make(chan *contract.Reply, 1)
	go func() { ended <- w.call("steer", `{"text":"x"}`) }()
	select {
	case r := <-ended:
		want(t, r, "ok")
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for the turn")
	}
	w.trust = contract.TrustEdit
	want(t, w.call("steer", `{"text":"x"}`), contract.ApprovalRequired)
}

// TestKeyWhileFollowing: who repeats a call that waits for what it started gets its first answer,
// and its last one later. When that fails, the first one stays: the effect is there.
func TestKeyWhileFollowing(t *testing.T) {
	for _, fails := range []error{nil, fault.New(contract.NotFound, "lost"), errors.New("a surprise")} {
		w := newWorld(t)
		runs := 0
		begun, goOn := make(chan struct{}), make(chan struct{})
		w.ops["wait"] = contract.Do(contract.Def{Name: "wait", Title: "T", Doc: "D.", Gateway: "dodo_exec", Scope: contract.ScopeExec, Class: contract.ClassExec},
			func(context.Context, contract.Call, in) (contract.Act[out], error) {
				return contract.Act[out]{
					Summary: "wait",
					Run:     func(context.Context) (answer, error) { runs++; return answer{Data: out{Text: "begun"}}, nil },
					Follow: func(_ context.Context, a answer) (answer, error) {
						close(begun)
						<-goOn
						a.Data.Text += ", ended"
						return a, fails
					},
				}, nil
			})
		const args = `{"text":"x","idempotencyKey":"12345678"}`
		ended := make(chan *contract.Reply)
		go func() { ended <- w.call("wait", args) }()
		<-begun
		again := func(want string) {
			t.Helper()
			if r := w.call("wait", args); !r.OK || data(t, r) != want {
				t.Errorf("%v: %+v", fails, r)
			}
		}
		again(`{"replayed":true,"text":"begun"}`)
		close(goOn)
		if r := <-ended; r.OK != (fails == nil) {
			t.Errorf("%+v", r)
		}
		if fails == nil {
			again(`{"replayed":true,"text":"begun, ended"}`)
		} else {
			again(`{"replayed":true,"text":"begun"}`)
		}
		if runs != 1 {
			t.Errorf("it was run %d times", runs)
		}
	}
}
