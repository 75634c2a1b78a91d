package state_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// TestQuestionsAreBounded shows that a client cannot put questions without end, and that
// previews go when their questions are over.
func TestQuestionsAreBounded(t *testing.T) {
	ctx, c, dir := t.Context(), newClock(), place(t)
	s := open(t, dir, c)
	id := workspace(t, s, "/w", "boot_1")
	ask := func(n int) (state.Approval, error) {
		a, used, err := s.Consume(ctx, state.Question{
			Workspace: id, Epoch: "boot_1", Principal: "g", Tool: "write_file", Digest: fmt.Sprint(n), Summary: "s", Detail: json.RawMessage(`{"diff":"x"}`),
		}, time.Minute)
		if used {
			t.Error("used")
		}
		return a, err
	}
	first, err := ask(0)
	must(t, err)
	n := 1
	for ; err == nil && n < 1000; n++ {
		_, err = ask(n)
	}
	refused(t, err, contract.ResourceLimit)
	if n > 200 {
		t.Errorf("%d questions wait", n)
	}
	if again, err := ask(0); err != nil || again.ID != first.ID {
		t.Errorf("one that waits is not found: %v", err)
	}
	if _, err := s.Decide(ctx, id, first.ID, false); err != nil {
		t.Fatal(err)
	}
	_, err = ask(n)
	must(t, err)
	if a, err := s.Approval(ctx, id, "", first.ID); err != nil || a.Detail != nil || a.Status != state.Denied {
		t.Errorf("%+v, %v", a, err)
	}
	c.advance(time.Hour)
	_, err = ask(n + 1)
	must(t, err)
	if a, err := s.Approval(ctx, id, "", first.ID); err != nil || a.Detail != nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestPrunedPreviews: previews of processes that are gone go too.
func TestPrunedPreviews(t *testing.T) {
	ctx, c, dir := t.Context(), newClock(), place(t)
	s := open(t, dir, c)
	id := workspace(t, s, "/w", "boot_1")
	a, _, err := s.Consume(ctx, state.Question{Workspace: id, Epoch: "boot_1", Principal: "g", Tool: "t", Digest: "d", Detail: json.RawMessage(`{}`)}, time.Minute)
	must(t, err)
	keep := state.Retention{Audit: 24 * time.Hour, Idempotency: time.Hour}
	must(t, s.Prune(ctx, keep))
	if now, err := s.Approval(ctx, id, "", a.ID); err != nil || now.Detail == nil {
		t.Fatalf("%+v, %v", now, err)
	}
	c.advance(time.Hour)
	must(t, s.Prune(ctx, keep))
	if now, err := s.Approval(ctx, id, "", a.ID); err != nil || now.Detail != nil {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestHandoffsAreBounded shows that the newest notes of a workspace are kept, and all of
// another.
func TestHandoffsAreBounded(t *testing.T) {
	ctx, c, dir := t.Context(), newClock(), place(t)
	s := open(t, dir, c)
	a, b := workspace(t, s, "/a", "boot_1"), workspace(t, s, "/b", "boot_1")
	_, err := s.AddHandoff(ctx, b, "g", json.RawMessage(`{}`))
	must(t, err)
	var last state.Handoff
	for range state.MostHandoffs + 5 {
		c.advance(time.Second)
		last, err = s.AddHandoff(ctx, a, "g", json.RawMessage(`{}`))
		must(t, err)
	}
	list, err := s.Handoffs(ctx, a, 10_000)
	if err != nil || len(list) != state.MostHandoffs || list[0].ID != last.ID {
		t.Errorf("%d kept, %v", len(list), err)
	}
	if list, err := s.Handoffs(ctx, b, 10); err != nil || len(list) != 1 {
		t.Errorf("%d of the other, %v", len(list), err)
	}
}
