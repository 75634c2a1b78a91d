package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// world is a gate over a real state and operations that count what they do.
type world struct {
	*gate.Gate
	store *state.Store
	turns gate.Turns
	limit contract.Limits

	mu       sync.Mutex // guards what follows
	callers  map[string]contract.Principal
	scopes   contract.Scopes
	trust    contract.Trust
	version  int
	effects  []string
	prepares int
	fail     error  // what the effect ends with
	during   func() // called while an effect runs
	before   func() // called while one is prepared
	preview  string // what the owner would see
	epoch    string // of the workspace
	ops      map[string]contract.Op
	reached  map[string]int // leases by project
	released map[string]int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dodo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(context.Background(), dir, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := &world{
		store: store, limit: contract.DefaultLimits(), trust: contract.TrustTrusted, epoch: "boot_1",
		scopes:  contract.NewScopes(contract.AllScopes...),
		callers: map[string]contract.Principal{"local": contract.LocalOwner()},
		ops:     map[string]contract.Op{}, reached: map[string]int{}, released: map[string]int{},
	}
	w.Gate = gate.New(gate.Config{Authority: w, Workspaces: w, State: store, Limits: func() contract.Limits { return w.limit }})
	return w
}

func (w *world) Principal(_ context.Context, caller string) (contract.Principal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.callers[caller]
	if !ok {
		return p, fault.New(contract.AuthRequired, "nobody is known by that name")
	}
	return p, nil
}

func (w *world) Standing(_ context.Context, p contract.Principal, _ string) (gate.Standing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return gate.Standing{Scopes: w.scopes, Trust: w.trust, Version: w.version}, nil
}

func (w *world) Lease(_ context.Context, _ contract.Principal, project string) (gate.Workspace, func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reached[project]++
	return gate.Workspace{ID: "ws_1", Epoch: w.epoch, Lookup: w.lookup, Turns: &w.turns}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.released[project]++
	}, nil
}

type in struct {
	Text           string `json:"text" maxLength:"1000"`
	ProjectID      string `json:"projectId,omitempty" maxLength:"100"`
	IdempotencyKey string `json:"idempotencyKey,omitempty" maxLength:"128"`
}

type out struct {
	Text     string `json:"text"`
	Replayed bool   `json:"replayed"`
}

type answer = contract.Answer[out]

func (w *world) lookup(name string) (contract.Op, bool) {
	if o, ok := w.ops[name]; ok {
		return o, true
	}
	o, ok := w.build(name)
	w.ops[name] = o
	return o, ok
}

func (w *world) build(name string) (contract.Op, bool) {
	def := contract.Def{Name: name, Title: "T", Doc: "D.", Gateway: "dodo_read", Scope: contract.ScopeRead, Class: contract.ClassRead}
	look := func(_ context.Context, _ contract.Call, i in) (answer, error) {
		if i.Text == "panic" {
			panic("a secret: /home/me")
		}
		if i.Text == "surprise" {
			return answer{}, errors.New("open /home/me/secret: no such file")
		}
		return answer{Data: out{Text: i.Text}, Ref: "ref_" + i.Text}, nil
	}
	switch name {
	case "look", "project_overview":
		return contract.Read(def, look), true
	case "change", "run":
		def.Scope, def.Class = contract.ScopeWrite, contract.ClassMutate
		if name == "run" {
			def.Scope, def.Class = contract.ScopeExec, contract.ClassExec
		}
		return contract.Do(def, func(_ context.Context, _ contract.Call, i in) (contract.Act[out], error) {
			w.mu.Lock()
			w.prepares++
			before, preview := w.before, w.preview
			w.mu.Unlock()
			if before != nil {
				before()
			}
			switch i.Text {
			case "dry":
				return contract.Act[out]{Done: &answer{Data: out{Text: "dry"}}}, nil
			case "nothing":
				return contract.Act[out]{}, nil
			}
			return contract.Act[out]{Summary: "change a thing", Preview: map[string]string{"diff": preview}, Run: func(context.Context) (answer, error) {
				w.mu.Lock()
				w.effects = append(w.effects, i.Text)
				fail, during := w.fail, w.during
				w.mu.Unlock()
				if during != nil {
					during()
				}
				if i.Text == "panic" {
					panic("boom")
				}
				return answer{Data: out{Text: i.Text}}, fail
			}}, nil
		}), true
	}
	return contract.Op{}, false
}

// call makes a request in the current context.
func (w *world) call(op, args string) *contract.Reply {
	id, epoch := "ws_1", w.epoch
	return w.Run(context.Background(), gate.Request{
		Caller: "local", Op: op, Args: json.RawMessage(args), Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &epoch},
	})
}

func (w *world) did() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.effects)
}

func code(r *contract.Reply) string {
	if r.OK {
		return "ok"
	}
	return string(r.Error.Code)
}

func want(t *testing.T, r *contract.Reply, c fault.Code) {
	t.Helper()
	if code(r) != string(c) {
		t.Fatalf("%s, want %s: %+v", code(r), c, r.Error)
	}
}

// TestUnrecordedSaysWhy: a call that cannot be recorded gives no result, and names the
// reason that somebody can do something about.
func TestUnrecordedSaysWhy(t *testing.T) {
	w := newWorld(t)
	dir := w.store.Dir()
	w.during = func() { _ = os.Rename(dir, dir+"-away") }
	r := w.call("change", `{"text":"x"}`)
	want(t, r, contract.InternalError)
	if e := r.Error; !strings.Contains(e.Message, "withheld: the installation directory") || !strings.Contains(e.Recovery, "may have happened") ||
		!strings.Contains(e.Recovery, "puts it back") || !e.Retryable {
		t.Errorf("%+v", e)
	}
}

// TestOrderOfRefusals breaks one condition after the other, from the last to the first: each
// refusal hides those behind it.
func TestOrderOfRefusals(t *testing.T) {
	w := newWorld(t)
	id, epoch, target := "ws_1", "boot_1", "prj_00000000"
	r := gate.Request{Caller: "local", Op: "change", Args: json.RawMessage(`{"text":"x"}`), Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &epoch}}
	step := func(c fault.Code) {
		t.Helper()
		got := w.Run(context.Background(), r)
		if string(c) == "ok" && got.OK {
			return
		}
		want(t, got, c)
	}
	step("ok")
	w.trust = contract.TrustInspect
	step(contract.ApprovalRequired)
	r.Args = json.RawMessage(`{"text":"x","more":1}`)
	step(contract.InvalidInput)
	w.limit.RequestBodyBytes = 10
	step(contract.ResourceLimit)
	old := "boot_0"
	r.Context.WorkspaceEpoch = &old
	step(contract.StaleWorkspace)
	other := "ws_2"
	r.Context.WorkspaceID = &other
	step(contract.WorkspaceMismatch)
	w.scopes = contract.NewScopes(contract.ScopeRead, contract.ScopeExec)
	step(contract.Forbidden)
	w.scopes = nil
	step(contract.WorkspaceAccessRequired)
	r.Args, r.Context.TargetProjectID = json.RawMessage(`{"projectId":"p"}`), &target
	step(contract.InvalidInput)
	r.Caller = "stranger"
	step(contract.AuthRequired)
	if w.did() != 1 {
		t.Errorf("%d effects", w.did())
	}
	for p, n := range w.reached {
		if w.released[p] != n {
			t.Errorf("project %q: %d leases, %d released", p, n, w.released[p])
		}
	}
}

// TestContextIsShownLate shows that an answer says nothing about the workspace before the
// caller was admitted to it, and does afterwards.
func TestContextIsShownLate(t *testing.T) {
	w := newWorld(t)
	w.scopes = nil
	if r := w.call("look", `{"text":"x"}`); r.WorkspaceID != nil || r.WorkspaceEpoch != nil {
		t.Error("without access the workspace is named")
	}
	w.scopes = contract.NewScopes(contract.ScopeWrite)
	r := w.call("look", `{"text":"x"}`)
	want(t, r, contract.Forbidden)
	if r.WorkspaceID != nil || r.Error.Detail["requiredScope"] != "dodo:read" {
		t.Errorf("%+v", r)
	}
	w.scopes = contract.NewScopes(contract.ScopeRead)
	w.epoch = "boot_2"
	id, old := "ws_1", "boot_1"
	r = w.Run(context.Background(), gate.Request{Caller: "local", Op: "look", Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &old}})
	want(t, r, contract.StaleWorkspace)
	if r.WorkspaceEpoch == nil || *r.WorkspaceEpoch != "boot_2" {
		t.Error("a stale caller is not told the epoch")
	}
}

// TestOverviewNeedsNoContext: it gives it.
func TestOverviewNeedsNoContext(t *testing.T) {
	w := newWorld(t)
	if r := w.Run(context.Background(), gate.Request{Caller: "local", Op: "project_overview", Args: json.RawMessage(`{"text":"x"}`)}); !r.OK {
		t.Fatalf("%+v", r.Error)
	}
	want(t, w.Run(context.Background(), gate.Request{Caller: "local", Op: "look", Args: json.RawMessage(`{"text":"x"}`)}), contract.InvalidInput)
}

// TestChoose: who may not read the workspace is told what else there is, by project_overview
// alone, and the answer names no workspace.
func TestChoose(t *testing.T) {
	w := newWorld(t)
	w.scopes = nil
	ask := func(op string, c gate.Context, args string) *contract.Reply {
		return w.Run(context.Background(), gate.Request{Caller: "local", Op: op, Context: c, Args: json.RawMessage(args)})
	}
	want(t, ask("project_overview", gate.Context{}, `{"text":"x"}`), contract.WorkspaceAccessRequired)
	var choice *gate.Choice
	w.Choose = func(_ context.Context, p contract.Principal) (*gate.Choice, error) {
		if !p.Owner {
			t.Errorf("%+v", p)
		}
		return choice, nil
	}
	want(t, ask("project_overview", gate.Context{}, `{"text":"x"}`), contract.WorkspaceAccessRequired)
	o, _ := w.lookup("project_overview")
	choice = &gate.Choice{Op: o, Result: contract.Result{Data: out{Text: "these"}}}
	r := ask("project_overview", gate.Context{}, `{"text":"x"}`)
	if !r.OK || r.WorkspaceID != nil || r.WorkspaceEpoch != nil || data(t, r) != `{"text":"these","replayed":false}` {
		t.Errorf("%+v %+v", r, r.Error)
	}
	want(t, ask("project_overview", gate.Context{}, `{"text":"x","more":1}`), contract.InvalidInput)
	project := "prj_00000000"
	want(t, ask("project_overview", gate.Context{TargetProjectID: &project}, `{"text":"x"}`), contract.WorkspaceAccessRequired)
	want(t, ask("look", gate.Context{}, `{"text":"x"}`), contract.WorkspaceAccessRequired)
	w.scopes = contract.NewScopes(contract.ScopeWrite)
	if r := ask("project_overview", gate.Context{}, `{"text":"x"}`); !r.OK {
		t.Errorf("a client that may write here, and read elsewhere: %+v", r.Error)
	}
	w.scopes = contract.NewScopes(contract.ScopeRead)
	if r := ask("project_overview", gate.Context{}, `{"text":"x"}`); !r.OK || data(t, r) != `{"text":"x","replayed":false}` {
		t.Errorf("%+v", r)
	}
}

// TestApproval shows that the owner's word is for one call: these arguments, this preview,
// this policy, this epoch, this principal, once.
func TestApproval(t *testing.T) {
	w := newWorld(t)
	w.trust = contract.TrustInspect
	w.callers["other"] = contract.Principal{GrantID: "g2", ClientID: "c2", Scopes: w.scopes}
	ask := func(args string) string {
		t.Helper()
		r := w.call("change", args)
		want(t, r, contract.ApprovalRequired)
		if !r.Error.Retryable || !strings.Contains(r.Error.Recovery, "dodo approve") {
			t.Errorf("%+v", r.Error)
		}
		return r.Error.Detail["approvalId"].(string)
	}
	one := ask(`{"text":"a"}`)
	if again := ask(`{ "text" : "a" }`); again != one {
		t.Error("the same call put another question")
	}
	if other := ask(`{"text":"b"}`); other == one {
		t.Error("another call has the same question")
	}
	approve := func(id string) {
		t.Helper()
		if _, err := w.store.Decide(context.Background(), "ws_1", id, true); err != nil {
			t.Fatal(err)
		}
	}
	approve(one)
	want(t, w.call("change", `{"text":"b"}`), contract.ApprovalRequired)
	id, epoch := "ws_1", w.epoch
	r := w.Run(context.Background(), gate.Request{Caller: "other", Op: "change", Args: json.RawMessage(`{"text":"a"}`), Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &epoch}})
	want(t, r, contract.ApprovalRequired)
	w.preview = "the file changed meanwhile"
	want(t, w.call("change", `{"text":"a"}`), contract.ApprovalRequired)
	w.preview = ""
	w.version++
	want(t, w.call("change", `{"text":"a"}`), contract.ApprovalRequired)
	w.version--
	if r := w.call("change", `{"text":"a"}`); !r.OK {
		t.Fatalf("approved: %+v", r.Error)
	}
	want(t, w.call("change", `{"text":"a"}`), contract.ApprovalRequired)
	if w.did() != 1 {
		t.Errorf("%d effects", w.did())
	}
	two := ask(`{"text":"a"}`)
	approve(two)
	w.epoch = "boot_2"
	want(t, w.call("change", `{"text":"a"}`), contract.ApprovalRequired)
	if w.did() != 1 {
		t.Errorf("%d effects after the epoch changed", w.did())
	}
}

// TestNothingToAsk shows that what has no effect asks nobody.
func TestNothingToAsk(t *testing.T) {
	w := newWorld(t)
	w.trust = contract.TrustInspect
	if r := w.call("change", `{"text":"dry"}`); !r.OK {
		t.Errorf("%+v", r.Error)
	}
	want(t, w.call("run", `{"text":"x"}`), contract.ApprovalRequired)
	w.trust = contract.TrustEdit
	if r := w.call("change", `{"text":"x"}`); !r.OK {
		t.Errorf("%+v", r.Error)
	}
	want(t, w.call("run", `{"text":"x"}`), contract.ApprovalRequired)
}

// TestReplay shows that an effect with a key happens once, before anybody is asked again.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	const args = `{"text":"a","idempotencyKey":"12345678"}`
	first := w.call("change", args)
	if !first.OK || data(t, first) != `{"text":"a","replayed":false}` {
		t.Fatalf("%+v", first)
	}
	w.trust = contract.TrustInspect
	w.scopes = contract.NewScopes(contract.ScopeWrite)
	second := w.call("change", `{"idempotencyKey":"12345678", "text":"a"}`)
	if !second.OK || data(t, second) != `{"replayed":true,"text":"a"}` {
		t.Fatalf("%+v %s", second.Error, *second.Data)
	}
	want(t, w.call("change", `{"text":"b","idempotencyKey":"12345678"}`), contract.IdempotencyConflict)
	if w.did() != 1 || w.prepares != 1 {
		t.Errorf("%d effects, %d prepared", w.did(), w.prepares)
	}
}

// data is the JSON of an answer's data.
func data(t *testing.T, r *contract.Reply) string {
	t.Helper()
	raw, err := op.Encode(*r.Data)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestOutputIsChecked: an answer that is not what the operation says it answers is a fault
// of the program, and is not given.
func TestOutputIsChecked(t *testing.T) {
	w := newWorld(t)
	type bad struct {
		Kind string `json:"kind" enum:"good"`
	}
	w.ops["lie"] = contract.Read(contract.Def{Name: "lie", Title: "T", Doc: "D.", Gateway: "dodo_read", Scope: contract.ScopeRead, Class: contract.ClassRead},
		func(_ context.Context, _ contract.Call, i in) (contract.Answer[bad], error) {
			return contract.Answer[bad]{Data: bad{Kind: i.Text}}, nil
		})
	if r := w.call("lie", `{"text":"good"}`); !r.OK {
		t.Fatalf("%+v", r.Error)
	}
	r := w.call("lie", `{"text":"bad"}`)
	want(t, r, contract.InternalError)
	if r.Data != nil {
		t.Error("the answer is given all the same")
	}
}

// TestKeyAfterFailure shows that a clean failure gives the key back and an uncertain one
// does not.
func TestKeyAfterFailure(t *testing.T) {
	for _, c := range []struct {
		fail  error
		again fault.Code // of the second call
	}{
		{fault.New(contract.FileChanged, "changed"), "ok"},
		{fault.New(contract.PartialRecoveryRequired, "half"), contract.RecoveryRequired},
		{fault.New(contract.RecoveryRequired, "who knows"), contract.RecoveryRequired},
		{errors.New("a surprise"), contract.RecoveryRequired},
	} {
		w := newWorld(t)
		w.fail = c.fail
		const args = `{"text":"a","idempotencyKey":"12345678"}`
		if r := w.call("change", args); r.OK {
			t.Fatal("no failure")
		}
		w.fail = nil
		r := w.call("change", args)
		if code(r) != string(c.again) {
			t.Errorf("after %v: %s, want %s", c.fail, code(r), c.again)
		}
	}
}

// TestKeyIsLearned: where nobody noted how a call ended, its effect may tell.
func TestKeyIsLearned(t *testing.T) {
	done, surprise := &out{Text: "was done"}, fault.New(contract.NotFound, "lost")
	for _, c := range []struct {
		outcome contract.Outcome[out]
		err     error
		says    string // code of the second call, or what it answers
		effects int
	}{
		{contract.Outcome[out]{Known: true, Done: done}, nil, `{"replayed":true,"text":"was done"}`, 1},
		{contract.Outcome[out]{Known: true}, nil, `{"text":"again","replayed":false}`, 2},
		{contract.Outcome[out]{}, nil, string(contract.RecoveryRequired), 1},
		{contract.Outcome[out]{}, surprise, string(contract.NotFound), 1},
	} {
		w := newWorld(t)
		effects := 0
		def := contract.Def{Name: "once", Title: "T", Doc: "D.", Gateway: "dodo_read", Scope: contract.ScopeWrite, Class: contract.ClassMutate}
		w.ops["once"] = contract.DoOnce(def, func(context.Context, contract.Call, in) (contract.Act[out], error) {
			return contract.Act[out]{Run: func(context.Context) (answer, error) {
				if effects++; effects == 1 {
					return answer{}, errors.New("a surprise")
				}
				return answer{Data: out{Text: "again"}}, nil
			}}, nil
		}, func(_ context.Context, call contract.Call, _ in) (contract.Outcome[out], error) {
			if age := time.Since(call.Since); age < 0 || age > time.Minute {
				t.Errorf("the outcome is asked for a call of %v", call.Since)
			}
			return c.outcome, c.err
		})
		const args = `{"text":"a","idempotencyKey":"12345678"}`
		w.call("once", args)
		r := w.call("once", args)
		says := code(r)
		if r.OK {
			says = data(t, r)
		}
		if says != c.says || effects != c.effects {
			t.Errorf("%+v: %s, %d effects", c.outcome, says, effects)
		}
		if third := w.call("once", args); code(third) != code(r) {
			t.Errorf("%+v: then %s", c.outcome, code(third))
		}
	}
}

// TestContained shows that a panic and a surprise fail the call alone and tell nothing.
func TestContained(t *testing.T) {
	w := newWorld(t)
	for _, c := range [][2]string{{"look", "panic"}, {"look", "surprise"}, {"change", "panic"}, {"change", "nothing"}} {
		r := w.call(c[0], `{"text":"`+c[1]+`"}`)
		want(t, r, contract.InternalError)
		if strings.Contains(r.Error.Message, "home") || strings.Contains(r.Error.Message, "boom") {
			t.Errorf("%s %s tells %q", c[0], c[1], r.Error.Message)
		}
	}
	if r := w.call("change", `{"text":"after"}`); !r.OK {
		t.Errorf("after a panic in an effect: %+v", r.Error)
	}
}

// TestAuthorityAfterTheWait shows that what was revoked while a call waited counts.
func TestAuthorityAfterTheWait(t *testing.T) {
	w := newWorld(t)
	release, err := w.turns.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	prepared := make(chan struct{})
	w.before = func() { close(prepared) }
	done := make(chan *contract.Reply)
	go func() { done <- w.call("change", `{"text":"a"}`) }()
	<-prepared
	w.mu.Lock()
	delete(w.callers, "local")
	w.mu.Unlock()
	release()
	want(t, <-done, contract.AuthRequired)
	if w.did() != 0 {
		t.Error("a revoked caller had its effect")
	}
}

// TestTurns shows one effect at a time in the order they came, the bound of the queue, and
// that who no longer waits leaves it.
func TestTurns(t *testing.T) {
	var turns gate.Turns
	hold, err := turns.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	var running atomic.Int32
	var wg sync.WaitGroup
	ready := func(n int) {
		for turns.Waiting() != n {
			time.Sleep(time.Millisecond)
		}
	}
	gone, cancel := context.WithCancel(context.Background())
	for i := range 32 {
		ctx := context.Background()
		if i == 7 {
			ctx = gone
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			release, err := turns.Take(ctx)
			if i == 7 {
				if !errors.Is(err, contract.Conflict) {
					t.Errorf("cancelled: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if running.Add(1) != 1 {
				t.Error("two at once")
			}
			order = append(order, i)
			running.Add(-1)
			release()
		}()
		ready(i + 1)
	}
	if _, err := turns.Take(context.Background()); !errors.Is(err, contract.ResourceLimit) {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	ready(31)
	hold()
	wg.Wait()
	for i, n := 0, 0; i < len(order); i, n = i+1, n+1 {
		if n == 7 {
			n++
		}
		if order[i] != n {
			t.Fatalf("order %v", order)
		}
	}
	release, err := turns.Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestAudit shows that every call is a row: refused, malformed and unauthenticated ones
// too, and a gateway's beside its target's; and that arguments are not in it.
func TestAudit(t *testing.T) {
	w := newWorld(t)
	w.call("look", `{"text":"my private words"}`)
	if e, err := w.store.Events(context.Background(), "", 1); err != nil || e[0].Ref != "ref_my private words" {
		t.Errorf("%+v, %v", e, err)
	}
	w.call("look", `{"text":1}`)
	w.call("no_such", `{}`)
	w.Run(context.Background(), gate.Request{Caller: "stranger", Op: "look"})
	w.Run(context.Background(), gate.Request{Caller: "local", Op: "look", Via: "dodo_read", Malformed: fault.New(contract.InvalidInput, "broken")})
	events, err := w.store.Events(context.Background(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		got = append(got, e.Tool+" "+e.Result+" "+e.Principal)
		if e.Ref == "" && strings.Contains(fmt.Sprint(e), "private") || len(e.Input) != 24 {
			t.Errorf("%+v", e)
		}
	}
	wantRows := []string{
		"look ok local-stdio", "look INVALID_INPUT local-stdio", "no_such NOT_FOUND local-stdio", "look AUTH_REQUIRED ",
		"dodo_read INVALID_INPUT local-stdio", "look INVALID_INPUT local-stdio",
	}
	if strings.Join(got, "\n") != strings.Join(wantRows, "\n") {
		t.Errorf("%q", got)
	}
	if v, err := w.store.Verify(context.Background()); err != nil || v.Broken != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestNoAuditNoResult shows that a call that cannot be recorded gives no result, and says
// when something may have happened.
func TestNoAuditNoResult(t *testing.T) {
	w := newWorld(t)
	w.during = func() { _ = w.store.Close() }
	r := w.call("change", `{"text":"a"}`)
	want(t, r, contract.InternalError)
	if r.Data != nil || !r.Error.Retryable || !strings.Contains(r.Error.Recovery, "may have happened") {
		t.Errorf("%+v", r)
	}
	r = w.call("look", `{"text":"a"}`)
	want(t, r, contract.InternalError)
	if r.Data != nil {
		t.Error("a result without a record")
	}
}

// TestSplit shows how the context is taken out of a direct call's arguments.
func TestSplit(t *testing.T) {
	c, rest, err := gate.Split(json.RawMessage(` { "a" : [1, {"workspaceId":2}], "workspaceId":"w","workspaceEpoch" : "e", "targetProjectId":null, "\u0062":"\ud83d\ude00" } `))
	if err != nil || c.WorkspaceID == nil || *c.WorkspaceID != "w" || *c.WorkspaceEpoch != "e" || c.TargetProjectID != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if got, want := string(rest), `{"a":[1, {"workspaceId":2}],"\u0062":"\ud83d\ude00"}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, bad := range []string{`[]`, `"x"`, `null`, `{`, `{"a":1} {}`, `{"workspaceId":1}`, `{"workspaceId":""}`, `{"workspaceId":"a","workspaceId":"b"}`,
		`{"workspaceId":"` + strings.Repeat("x", 129) + `"}`, `{"a"}`, `{"a":}`, "\xff"} {
		if _, _, err := gate.Split(json.RawMessage(bad)); !errors.Is(err, contract.InvalidInput) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if gate.Nested(json.RawMessage(`{"a":1,"workspaceEpoch":"x"}`)) == nil || gate.Nested(json.RawMessage(`{"a":{"workspaceEpoch":"x"}}`)) != nil || gate.Nested(nil) != nil {
		t.Error("a context within args")
	}
}

// FuzzSplit shows that what Split leaves and takes is what encoding/json sees.
func FuzzSplit(f *testing.F) {
	f.Add(`{"workspaceId":"w","a":{"b":[1,2]},"workspaceEpoch":"e"}`)
	f.Add(`{"a":"\u0000","b":1e3}`)
	f.Fuzz(func(t *testing.T, args string) {
		c, rest, err := gate.Split(json.RawMessage(args))
		if err != nil || len(rest) == 0 {
			return
		}
		var whole, left map[string]json.RawMessage
		if json.Unmarshal([]byte(args), &whole) != nil {
			return // looser than encoding/json, which the operation's own decoder is not
		}
		if err := json.Unmarshal(rest, &left); err != nil {
			t.Fatalf("%s leaves %s: %v", args, rest, err)
		}
		for name := range whole {
			ours := name == "workspaceId" || name == "workspaceEpoch" || name == "targetProjectId"
			if _, ok := left[name]; ok == ours {
				t.Fatalf("%s leaves %s", args, rest)
			}
		}
		if c.WorkspaceID != nil && *c.WorkspaceID == "" {
			t.Fatal("an empty id")
		}
	})
}

// BenchmarkCall is an operation that does nothing, through the whole gate and its audit.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		if r := w.call("look", `{"text":"x"}`); !r.OK {
			b.Fatal(r.Error)
		}
	}
}
