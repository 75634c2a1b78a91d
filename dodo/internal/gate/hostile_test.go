package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/internal/fault"
)

// TestAuditKeepsNoLongNames: the name of an operation comes from outside, and what is no
// operation may be as long as a message.
func TestAuditKeepsNoLongNames(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", 1<<16)
	w.Run(context.Background(), gate.Request{Caller: "local", Op: long, Via: "dodo_read", Malformed: fault.New(contract.NotFound, "no")})
	w.call(long, `{}`)
	events, err := w.store.Events(context.Background(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 3 {
		t.Fatalf("%d rows", len(events))
	}
	for _, e := range events {
		if len(e.Tool) > 100 {
			t.Errorf("a row keeps a name of %d bytes", len(e.Tool))
		}
	}
}

// TestPanicAnywhereIsRecorded: also one that is neither in preparing nor in the effect.
func TestPanicAnywhereIsRecorded(t *testing.T) {
	type loud struct {
		V exploding `json:"v" type:"string"`
	}
	w := newWorld(t)
	w.ops["loud"] = contract.Read(contract.Def{Name: "loud", Title: "T", Doc: "D.", Gateway: "dodo_read", Scope: contract.ScopeRead, Class: contract.ClassRead},
		func(context.Context, contract.Call, struct{}) (contract.Answer[loud], error) {
			return contract.Answer[loud]{}, nil
		})
	want(t, w.call("loud", `{}`), contract.InternalError)
	w.ops["late"] = contract.Do(contract.Def{Name: "late", Title: "T", Doc: "D.", Gateway: "dodo_write", Scope: contract.ScopeWrite, Class: contract.ClassMutate},
		func(context.Context, contract.Call, in) (contract.Act[loud], error) {
			return contract.Act[loud]{Summary: "s", Run: func(context.Context) (contract.Answer[loud], error) {
				return contract.Answer[loud]{}, nil
			}}, nil
		})
	r := w.call("late", `{"text":"x","idempotencyKey":"12345678"}`)
	want(t, r, contract.InternalError)
	if !strings.Contains(r.Error.Recovery, "may have happened") {
		t.Errorf("after an effect: %+v", r.Error)
	}
	want(t, w.call("late", `{"text":"x","idempotencyKey":"12345678"}`), contract.RecoveryRequired)
	events, err := w.store.Events(context.Background(), "", 10)
	if err != nil || len(events) != 3 {
		t.Fatalf("%d rows, %v", len(events), err)
	}
	if r := w.call("change", `{"text":"after"}`); !r.OK {
		t.Errorf("the turn is lost: %+v", r.Error)
	}
}

type exploding struct{}

// MarshalJSON panics.
func (exploding) MarshalJSON() ([]byte, error) { panic("boom: /home/me") }

// TestReplayWhileWaiting shows that a call that waited behind the same call gets its answer,
// and that the owner is not asked for what has happened already.
func TestReplayWhileWaiting(t *testing.T) {
	w := newWorld(t)
	w.trust = contract.TrustInspect
	const args = `{"text":"a","idempotencyKey":"12345678"}`
	r := w.call("change", args)
	want(t, r, contract.ApprovalRequired)
	if _, err := w.store.Decide(context.Background(), "ws_1", r.Error.Detail["approvalId"].(string), true); err != nil {
		t.Fatal(err)
	}
	release, err := w.turns.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	replies := make(chan *contract.Reply)
	for range 2 {
		go func() { replies <- w.call("change", args) }()
	}
	for w.turns.Waiting() != 2 {
		time.Sleep(time.Millisecond)
	}
	release()
	for range 2 {
		if r := <-replies; !r.OK {
			t.Errorf("%+v", r.Error)
		}
	}
	if w.did() != 1 {
		t.Errorf("%d effects", w.did())
	}
	if list, err := w.store.PendingApprovals(context.Background()); err != nil || len(list) != 0 {
		t.Errorf("the owner is asked again: %+v, %v", list, err)
	}
}

// TestRevokedCallerIsNamed: the row of a call that was refused after its wait says whose it
// was.
func TestRevokedCallerIsNamed(t *testing.T) {
	w := newWorld(t)
	w.before = func() {
		w.mu.Lock()
		delete(w.callers, "local")
		w.mu.Unlock()
	}
	want(t, w.call("change", `{"text":"a"}`), contract.AuthRequired)
	e, err := w.store.Events(context.Background(), "", 1)
	if err != nil || e[0].Principal != contract.LocalGrant {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestTargetWithNulls: a null is an absent argument here, as it is everywhere.
func TestTargetWithNulls(t *testing.T) {
	w := newWorld(t)
	id, epoch, target := "ws_1", "boot_1", "prj_00000000"
	run := func(args string) *contract.Reply {
		return w.Run(context.Background(), gate.Request{Caller: "local", Op: "look", Args: json.RawMessage(args),
			Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &epoch, TargetProjectID: &target}})
	}
	if r := run(`{"text":"x","projectId":null}`); !r.OK {
		t.Errorf("%+v", r.Error)
	}
	want(t, run(`{"text":"x","projectId":"prj_00000001"}`), contract.InvalidInput)
	want(t, run(`{"text":"x","projectId":null,"projectId":"prj_00000001"}`), contract.InvalidInput)
}

// TestEffectThenFailure: a failure of the program after an effect was begun says so.
func TestEffectThenFailure(t *testing.T) {
	w := newWorld(t)
	w.fail = errors.New("a surprise")
	r := w.call("change", `{"text":"a"}`)
	want(t, r, contract.InternalError)
	if !strings.Contains(r.Error.Recovery, "may have happened") {
		t.Errorf("%+v", r.Error)
	}
}

// TestRefusalsAreFoundByWorkspace: the owner sees where somebody tried to go, though the
// caller is not told; and which question a call put.
func TestRefusalsAreFoundByWorkspace(t *testing.T) {
	w := newWorld(t)
	w.scopes = nil
	if r := w.call("look", `{"text":"x"}`); r.WorkspaceID != nil {
		t.Error("the caller is told")
	}
	w.scopes, w.trust = contract.NewScopes(contract.AllScopes...), contract.TrustInspect
	asked := w.call("change", `{"text":"x"}`)
	want(t, asked, contract.ApprovalRequired)
	e, err := w.store.Events(context.Background(), "ws_1", 10)
	if err != nil || len(e) != 2 || e[1].Result != string(contract.WorkspaceAccessRequired) {
		t.Fatalf("%+v, %v", e, err)
	}
	if e[0].Ref != asked.Error.Detail["approvalId"] {
		t.Errorf("%+v", e[0])
	}
}
