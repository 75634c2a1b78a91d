package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
	"localmcp/internal/sqlitedb"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused holds an error against the code it must have.
func refused(t testing.TB, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// place is a private directory.
func place(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o700))
	return dir
}

// A clock stands still until it is set.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func open(t testing.TB, dir string, c *clock) *state.Store {
	t.Helper()
	o := state.Options{}
	if c != nil {
		o.Now = c.now
	}
	s, err := state.Open(t.Context(), dir, o)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func workspace(t testing.TB, s *state.Store, root, epoch string) string {
	t.Helper()
	w, _, err := s.OpenWorkspace(t.Context(), root, 7, 42, epoch)
	must(t, err)
	return w.ID
}

func TestWorkspaceKeepsItsIDAndLosesAuthorityWhenReplaced(t *testing.T) {
	ctx, dir := t.Context(), place(t)
	s := open(t, dir, nil)
	id := workspace(t, s, "/w", "boot_1")
	if _, err := s.SetTrust(ctx, id, contract.TrustTrusted); err != nil {
		t.Fatal(err)
	}
	must(t, s.GrantClient(ctx, id, "cl", contract.NewScopes(contract.ScopeWrite)))
	a, err := s.Authority(ctx, id, "cl")
	must(t, err)
	if a.Trust != contract.TrustTrusted || a.PolicyVersion != 1 || !a.ClientScopes.Has(contract.ScopeWrite) || a.AccessMode != contract.AccessManaged {
		t.Errorf("%+v", a)
	}
	must(t, s.Close())
	s = open(t, dir, nil)
	w, replaced, err := s.OpenWorkspace(ctx, "/w", 7, 42, "boot_2")
	if err != nil || replaced || w.ID != id || w.Trust != contract.TrustTrusted || w.LastEpoch != "boot_2" {
		t.Fatalf("%+v %v %v", w, replaced, err)
	}
	w, replaced, err = s.OpenWorkspace(ctx, "/w", 7, 43, "boot_3")
	if err != nil || !replaced || w.ID != id || w.Trust != contract.TrustInspect {
		t.Fatalf("%+v %v %v", w, replaced, err)
	}
	if a, err = s.Authority(ctx, id, "cl"); err != nil || a.Trust != contract.TrustInspect || a.PolicyVersion != 2 || a.ClientScopes != nil {
		t.Errorf("%+v %v", a, err)
	}
	other := open(t, place(t), nil)
	if workspace(t, other, "/w", "boot_1") == id {
		t.Error("two installations give one root the same id")
	}
	if _, err := s.Workspace(ctx, "ws_none"); !errors.Is(err, contract.NotFound) {
		t.Error(err)
	}
}

func TestApprovalIsUsedOnce(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	q := state.Question{Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "write_file", Digest: "sha256:1", Summary: "write a file", Detail: json.RawMessage(`{"a":1}`)}
	ask := func(q state.Question) (state.Approval, bool, error) { return s.Consume(ctx, q, time.Minute) }
	a, used, err := ask(q)
	if err != nil || used || a.Status != state.Pending {
		t.Fatalf("%+v %v %v", a, used, err)
	}
	if again, _, _ := ask(q); again.ID != a.ID {
		t.Error("the same call made another question")
	}
	if got, err := s.Approval(ctx, "ws_1", "g", a.ID); err != nil || string(got.Detail) != `{"a":1}` {
		t.Errorf("%+v %v", got, err)
	}
	_, err = s.Decide(ctx, "ws_2", a.ID, true)
	refused(t, err, contract.NotFound)
	_, err = s.Decide(ctx, "ws_1", a.ID, true)
	must(t, err)
	_, err = s.Decide(ctx, "ws_1", a.ID, false)
	refused(t, err, contract.Conflict)
	for name, other := range map[string]state.Question{
		"other arguments": {Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "write_file", Digest: "sha256:2"},
		"other caller":    {Workspace: "ws_1", Epoch: "boot_1", Principal: "h", Tool: "write_file", Digest: "sha256:1"},
		"other tool":      {Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "delete_path", Digest: "sha256:1"},
		"other workspace": {Workspace: "ws_2", Epoch: "boot_1", Principal: "g", Tool: "write_file", Digest: "sha256:1"},
	} {
		if _, used, err := ask(other); used || err != nil {
			t.Errorf("%s: used %v, %v", name, used, err)
		}
	}
	if _, used, err := ask(q); !used || err != nil {
		t.Fatalf("the approved call: %v %v", used, err)
	}
	if b, used, err := ask(q); used || err != nil || b.ID == a.ID {
		t.Errorf("the second call: %+v %v %v", b, used, err)
	}
	if _, err := s.Approval(ctx, "ws_1", "h", a.ID); !errors.Is(err, contract.NotFound) {
		t.Errorf("another caller sees it: %v", err)
	}
	if got, err := s.Approval(ctx, "ws_1", "g", a.ID); err != nil || got.Status != state.Consumed || got.Detail != nil {
		t.Errorf("%+v %v", got, err)
	}
}

func TestApprovalEnds(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	q := state.Question{Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "t", Digest: "d"}
	a, _, err := s.Consume(ctx, q, time.Minute)
	must(t, err)
	c.advance(time.Minute)
	if got, err := s.Approval(ctx, "ws_1", "", a.ID); err != nil || got.Status != state.Expired {
		t.Errorf("a pending one past its expiry: %+v %v", got, err)
	}
	_, err = s.Decide(ctx, "ws_1", a.ID, true)
	refused(t, err, contract.ApprovalExpired)
	if list, err := s.PendingApprovals(ctx); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	b, _, err := s.Consume(ctx, q, time.Minute)
	must(t, err)
	if b.ID == a.ID {
		t.Error("an expired question was taken up again")
	}
	_, err = s.Decide(ctx, "ws_1", b.ID, true)
	must(t, err)
	c.advance(time.Minute)
	_, used, err := s.Consume(ctx, q, time.Minute)
	if refused(t, err, contract.ApprovalExpired); used || !fault.From(err).Retryable {
		t.Errorf("used %v, %v", used, err)
	}
	d, used, err := s.Consume(ctx, q, time.Minute) // asks anew
	if err != nil || used || d.ID == b.ID || d.Status != state.Pending {
		t.Errorf("%+v %v %v", d, used, err)
	}
	_, err = s.Decide(ctx, "ws_1", d.ID, true)
	must(t, err)
	q.Epoch = "boot_2" // a switch, in the same process
	e, used, err := s.Consume(ctx, q, time.Minute)
	if err != nil || used || e.ID == d.ID {
		t.Errorf("approval of another epoch: %+v %v %v", e, used, err)
	}
	if got, _ := s.Approval(ctx, "ws_1", "", d.ID); got.Status != state.Denied {
		t.Errorf("the old epoch's: %+v", got)
	}
}

// Two windows of one client may ask the same at once: each has its own answer.
func TestApprovalOfAnotherLivingProcessStays(t *testing.T) {
	ctx, dir := t.Context(), place(t)
	one, two := open(t, dir, nil), open(t, dir, nil)
	q := state.Question{Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "t", Digest: "d"}
	a, _, err := one.Consume(ctx, q, time.Minute)
	must(t, err)
	q2 := q
	q2.Epoch = "boot_2"
	b, _, err := two.Consume(ctx, q2, time.Minute)
	must(t, err)
	_, err = two.Decide(ctx, "ws_1", a.ID, true)
	must(t, err)
	if _, used, err := two.Consume(ctx, q2, time.Minute); used || err != nil {
		t.Errorf("one process used the other's approval: %v %v", used, err)
	}
	if _, used, err := one.Consume(ctx, q, time.Minute); !used || err != nil {
		t.Errorf("%v %v", used, err)
	}
	if list, err := two.PendingApprovals(ctx); err != nil || len(list) != 1 || list[0].ID != b.ID {
		t.Errorf("%+v %v", list, err)
	}
	if got, err := two.Asked(ctx, b.ID); err != nil || got.ID != b.ID {
		t.Errorf("%+v %v", got, err)
	}
	_, err = two.Asked(ctx, a.ID)
	refused(t, err, contract.NotFound)
	must(t, two.Close())
	if _, _, err := one.Consume(ctx, q, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got, _ := one.Approval(ctx, "ws_1", "", b.ID); got.Status != state.Denied {
		t.Errorf("of a process that is gone: %+v", got)
	}
}

func TestKeys(t *testing.T) {
	ctx, c, dir := t.Context(), newClock(), place(t)
	s := open(t, dir, c)
	day := 24 * time.Hour
	k := state.Key{Key: "key-00001", Principal: "g", Workspace: "ws_1", Tool: "run_task"}
	r, receipt, err := s.Reserve(ctx, k, "d1", day)
	if err != nil || r == nil || receipt != nil {
		t.Fatalf("%v %s %v", r, receipt, err)
	}
	_, _, err = s.Reserve(ctx, k, "d1", day)
	if refused(t, err, contract.Conflict); !fault.From(err).Retryable {
		t.Error("a running call must be retryable")
	}
	_, _, err = s.Reserve(ctx, k, "d2", day)
	refused(t, err, contract.IdempotencyConflict)
	must(t, r.Release(ctx))
	refused(t, r.Complete(ctx, json.RawMessage(`{}`)), contract.RecoveryRequired)
	r, _, err = s.Reserve(ctx, k, "d1", day)
	must(t, err)
	must(t, r.Complete(ctx, json.RawMessage(`{"n":1}`)))
	begun := state.Key{Key: "key-00002", Principal: "g", Workspace: "ws_1", Tool: "run_command"}
	for _, end := range []func(*state.Reservation) error{
		func(r *state.Reservation) error { return nil },
		func(r *state.Reservation) error { return r.Keep(ctx) },
		func(r *state.Reservation) error { return r.Release(ctx) },
		func(r *state.Reservation) error { return r.Complete(ctx, json.RawMessage(`{"job":1,"over":true}`)) },
	} {
		r, receipt, err := s.Reserve(ctx, begun, "d1", day)
		must(t, err)
		if r == nil {
			t.Fatalf("it was taken: %s", receipt)
		}
		if at, err := s.Reserved(ctx, begun); err != nil || !at.Equal(c.now().Truncate(time.Millisecond)) {
			t.Errorf("%v, %v", at, err)
		}
		must(t, r.Begun(ctx, json.RawMessage(`{"job":1}`)))
		must(t, end(r))
		receipt, err = s.Receipt(ctx, begun, "d1", day)
		if err != nil || !strings.HasPrefix(string(receipt), `{"job":1`) {
			t.Errorf("%s %v", receipt, err)
		}
		begun.Key += "x"
	}
	if receipt, err := s.Receipt(ctx, state.Key{Key: "key-00002xxx", Principal: "g", Workspace: "ws_1", Tool: "run_command"}, "d1", day); err != nil || string(receipt) != `{"job":1,"over":true}` {
		t.Errorf("%s %v", receipt, err)
	}
	must(t, s.Close())
	s = open(t, dir, c)
	if r, receipt, err := s.Reserve(ctx, k, "d1", day); err != nil || r != nil || string(receipt) != `{"n":1}` {
		t.Errorf("%v %s %v", r, receipt, err)
	}
	if receipt, err := s.Receipt(ctx, k, "d1", day); err != nil || string(receipt) != `{"n":1}` {
		t.Errorf("%s %v", receipt, err)
	}
	_, err = s.Receipt(ctx, k, "d2", day)
	refused(t, err, contract.IdempotencyConflict)
	for name, other := range map[string]state.Key{
		"principal": {Key: k.Key, Principal: "h", Workspace: k.Workspace, Tool: k.Tool},
		"workspace": {Key: k.Key, Principal: k.Principal, Workspace: "ws_2", Tool: k.Tool},
		"tool":      {Key: k.Key, Principal: k.Principal, Workspace: k.Workspace, Tool: "other"},
	} {
		if receipt, err := s.Receipt(ctx, other, "d2", day); err != nil || receipt != nil {
			t.Errorf("other %s: %s %v", name, receipt, err)
		}
	}
	c.advance(day + time.Millisecond)
	if r, receipt, err := s.Reserve(ctx, k, "d3", day); err != nil || r == nil || receipt != nil {
		t.Errorf("after the retention: %v %s %v", r, receipt, err)
	} else {
		must(t, r.Keep(ctx))
	}
	_, err = s.Receipt(ctx, k, "d3", day)
	if refused(t, err, contract.RecoveryRequired); fault.From(err).Retryable {
		t.Error("retryable, though nothing changes by itself")
	}
	if receipt, err := s.Settle(ctx, k, "d3", day, nil); err != nil || receipt != nil {
		t.Errorf("%s %v", receipt, err)
	}
	r, _, err = s.Reserve(ctx, k, "d3", day)
	must(t, err)
	_, err = s.Settle(ctx, k, "d3", day, json.RawMessage(`{"n":2}`))
	refused(t, err, contract.Conflict) // it runs
	must(t, r.Keep(ctx))
	_, err = s.Settle(ctx, k, "d4", day, json.RawMessage(`{"n":2}`))
	refused(t, err, contract.IdempotencyConflict)
	for _, n := range []string{`{"n":3}`, `{"n":4}`} { // the second comes too late
		if receipt, err := s.Settle(ctx, k, "d3", day, json.RawMessage(n)); err != nil || string(receipt) != `{"n":3}` && n == `{"n":4}` {
			t.Errorf("%s %v", receipt, err)
		}
	}
	if receipt, err := s.Receipt(ctx, k, "d3", day); err != nil || string(receipt) != `{"n":3}` {
		t.Errorf("%s %v", receipt, err)
	}
}

func TestAuditChain(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	for i := range 1200 {
		must(t, s.Audit(ctx, state.Event{Request: "r", Principal: "g", Workspace: "ws_1", Tool: "read_files", Duration: time.Duration(i) * time.Microsecond, Result: "ok"}))
		c.advance(time.Second)
	}
	v, err := s.Verify(ctx)
	if err != nil || v.Broken != nil || v.Rows != 1200 || v.First != 1 || v.Last != 1200 {
		t.Fatalf("%+v %v", v, err)
	}
	must(t, s.Prune(ctx, state.Retention{Audit: 100 * time.Second, Idempotency: time.Hour}))
	v, err = s.Verify(ctx)
	if err != nil || v.Broken != nil || v.Rows != 100 || v.First != 1101 {
		t.Fatalf("after pruning: %+v %v", v, err)
	}
	list, err := s.Events(ctx, "ws_1", 3)
	if err != nil || len(list) != 3 || list[0].ID != 1200 || list[0].Hash != v.Head || list[0].Duration != 1199*time.Microsecond {
		t.Errorf("%+v %v", list, err)
	}
	must(t, s.Prune(ctx, state.Retention{}))
	if v, err = s.Verify(ctx); err != nil || v.Broken != nil || v.Rows != 0 {
		t.Fatalf("with nothing left: %+v %v", v, err)
	}
	must(t, s.Audit(ctx, state.Event{Tool: "x", Result: "ok"}))
	if v, err = s.Verify(ctx); err != nil || v.Broken != nil || v.Rows != 1 || v.First != 1201 {
		t.Fatalf("and one more: %+v %v", v, err)
	}
}

func BenchmarkAudit(b *testing.B) {
	s := open(b, place(b), nil)
	ctx := context.Background()
	for b.Loop() {
		must(b, s.Audit(ctx, state.Event{Request: "req_1", Principal: "local-stdio", Workspace: "ws_1", Tool: "read_files", Input: "012345678901234567890123", Duration: time.Millisecond, Result: "ok"}))
	}
}

func BenchmarkAuthority(b *testing.B) {
	s := open(b, place(b), nil)
	id := workspace(b, s, "/w", "boot_1")
	for b.Loop() {
		_, err := s.Authority(context.Background(), id, "stdio")
		must(b, err)
	}
}

// What a row costs that waits for the disk, as the audit's do not (ADR 0010).
func BenchmarkDurableRow(b *testing.B) {
	s := open(b, place(b), nil)
	for i := 0; b.Loop(); i++ { // SQLite writes nothing where nothing changes
		_, err := s.SetTodos(context.Background(), "ws_1", json.RawMessage(fmt.Sprintf("[%d]", i)))
		must(b, err)
	}
}

// Whatever the database meets reaches callers with a code of the contract, a sentence and,
// where the owner can do something, a hint; nothing else is touched.
func TestFault(t *testing.T) {
	for from, want := range map[fault.Code]struct {
		code  fault.Code
		retry bool
	}{
		sqlitedb.Busy: {contract.Timeout, true}, sqlitedb.Full: {contract.ResourceLimit, true}, sqlitedb.Damaged: {contract.InternalError, false},
		sqlitedb.Newer: {contract.MigrationReviewRequired, false}, sqlitedb.Foreign: {contract.Conflict, false}, sqlitedb.Unusable: {contract.InternalError, false},
		privdir.Unsafe: {contract.Forbidden, false}, privdir.Unusable: {contract.InternalError, false}, privdir.Busy: {contract.Timeout, true},
		safefile.NotSupported: {contract.NotSupported, false},
	} {
		cause := fmt.Errorf("deeper: %w", fault.New(from, "a sentence").WithHint("a hint"))
		got := fault.From(state.Fault(cause))
		if got.Code != want.code || got.Retryable != want.retry || got.Msg == "" || got.Hint != "a hint" || !errors.Is(got.Err, from) {
			t.Errorf("%s: %+v", from, got)
		}
	}
	other := errors.New("other")
	if state.Fault(other) != other || state.Fault(nil) != nil {
		t.Error("what is not the database's was changed")
	}
}
