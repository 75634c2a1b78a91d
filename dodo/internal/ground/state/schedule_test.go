package state_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/sqlitedb"
)

// room lets a workspace have 64 open schedules.
func room(open []state.Schedule) error {
	if len(open) >= 64 {
		return fault.New(contract.ResourceLimit, "it has %d", len(open)).WithHint("revoke one")
	}
	return nil
}

// proposed adds a schedule to a workspace.
func proposed(t testing.TB, s *state.Store, c *clock, ws, id string) state.Schedule {
	t.Helper()
	payload := json.RawMessage(`{"id":"` + id + `"}`)
	x := state.Schedule{ID: id, Workspace: ws, Payload: payload, Digest: contract.Hash(payload), Expires: c.now().Add(time.Hour)}
	must(t, s.AddSchedule(t.Context(), x, room))
	return x
}

func approval(x state.Schedule, next time.Time) state.ScheduleApproval {
	return state.ScheduleApproval{ID: x.ID, Digest: x.Digest, Policy: "p1", Next: next}
}

// TestScheduleDecisions: only the exact digest is approved, only where saved trust is
// trusted, and only what is open.
func TestScheduleDecisions(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	ws := workspace(t, s, "/w", "boot_1")
	x, next := proposed(t, s, c, ws, "sched_a"), c.now().Add(time.Minute)
	_, err := s.ApproveSchedule(ctx, approval(x, next))
	refused(t, err, contract.Forbidden)
	_, err = s.SetTrust(ctx, ws, contract.TrustTrusted)
	must(t, err)
	wrong := approval(x, next)
	wrong.Digest = contract.Hash([]byte("other"))
	_, err = s.ApproveSchedule(ctx, wrong)
	refused(t, err, contract.Conflict)
	resumed := approval(x, next)
	resumed.Resume = true
	_, err = s.ApproveSchedule(ctx, resumed)
	refused(t, err, contract.Conflict) // it was never approved
	_, err = s.PauseSchedule(ctx, x.ID)
	refused(t, err, contract.Conflict)
	a, err := s.ApproveSchedule(ctx, approval(x, next))
	must(t, err)
	if a.Status != state.ScheduleApproved || !a.Next.Equal(next) || a.Policy != "p1" || a.Approved.IsZero() {
		t.Errorf("%+v", a)
	}
	a, err = s.PauseSchedule(ctx, x.ID)
	must(t, err)
	if a.Status != state.SchedulePaused || !a.Next.IsZero() || a.Reason == "" {
		t.Errorf("%+v", a)
	}
	if _, err = s.PauseSchedule(ctx, x.ID); err != nil {
		t.Errorf("again: %v", err)
	}
	a, err = s.ApproveSchedule(ctx, resumed)
	must(t, err)
	if a.Status != state.ScheduleApproved || a.Reason != "" {
		t.Errorf("%+v", a)
	}
	for range 2 {
		a, err = s.RevokeSchedule(ctx, x.ID)
		must(t, err)
	}
	_, err = s.ApproveSchedule(ctx, approval(x, next))
	refused(t, err, contract.Conflict)
	_, err = s.Schedule(ctx, "sched_none")
	refused(t, err, contract.NotFound)

	late := proposed(t, s, c, ws, "sched_b")
	c.advance(time.Hour)
	_, err = s.ApproveSchedule(ctx, approval(late, next))
	refused(t, err, contract.Conflict)
	if list, err := s.Schedules(ctx, ws, false); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	list, err := s.Schedules(ctx, ws, true)
	if err != nil || len(list) != 2 || list[1].Status != state.ScheduleExpired || list[0].Status != state.ScheduleRevoked {
		t.Errorf("%v, %v", list, err)
	}
	events, err := s.Events(ctx, ws, 10)
	must(t, err)
	var acts []string
	for _, e := range events {
		acts = append(acts, e.Tool)
	}
	if got, want := fmt.Sprint(acts), "[owner.schedule.revoke owner.schedule.resume owner.schedule.pause owner.schedule.approve owner.trust]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSchedulesAreBoundedAndFixed: a workspace has so many open ones, and none changes what
// it says.
func TestSchedulesAreBoundedAndFixed(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	ws, other := workspace(t, s, "/w", "boot_1"), workspace(t, s, "/v", "boot_2")
	for i := range 64 {
		proposed(t, s, c, ws, fmt.Sprint("sched_", i))
	}
	more := state.Schedule{ID: "sched_more", Workspace: ws, Payload: json.RawMessage("{}"), Expires: c.now().Add(time.Hour)}
	refused(t, s.AddSchedule(ctx, more, room), contract.ResourceLimit)
	proposed(t, s, c, other, "sched_other")
	_, err := s.RevokeSchedule(ctx, "sched_0")
	must(t, err)
	must(t, s.AddSchedule(ctx, more, room))
	for _, change := range []string{"payload = '{}'", "digest = 'x'", "expires = 1", "workspace = 'w'"} {
		if err := s.Write(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Exec(ctx, "UPDATE schedules SET "+change+" WHERE id = 'sched_1'")
			return err
		}); err == nil {
			t.Errorf("%s was changed", change)
		}
	}
}

// TestOneClaim: of many who take the same time, in two processes, one has it; and no time is
// used twice.
func TestOneClaim(t *testing.T) {
	ctx, c, dir := t.Context(), newClock(), place(t)
	stores := []*state.Store{open(t, dir, c), open(t, dir, c)}
	s := stores[0]
	ws := workspace(t, s, "/w", "boot_1")
	_, err := s.SetTrust(ctx, ws, contract.TrustTrusted)
	must(t, err)
	x, due := proposed(t, s, c, ws, "sched_a"), c.now()
	_, err = s.ApproveSchedule(ctx, approval(x, due))
	must(t, err)
	claim := state.Taking{Schedule: x.ID, Workspace: ws, Due: due, Next: due.Add(time.Minute)}
	var wait sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for i := range 20 {
		wait.Go(func() {
			ok, err := stores[i%2].TakeRun(ctx, claim)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if ok {
				taken++
			}
		})
	}
	wait.Wait()
	if taken != 1 {
		t.Errorf("%d have it", taken)
	}
	w, err := stores[1].Clockwork(ctx, ws)
	must(t, err)
	if len(w.Open) != 1 || len(w.Due) != 0 {
		t.Fatalf("%+v", w)
	}
	if a, _ := s.Schedule(ctx, x.ID); !a.Next.Equal(claim.Next) {
		t.Errorf("next is %v", a.Next)
	}

	// Set back, the clock comes to the same time again.
	_, err = s.ApproveSchedule(ctx, approval(x, due))
	must(t, err)
	if ok, err := s.TakeRun(ctx, claim); ok || err != nil {
		t.Errorf("used twice: %v", err)
	}

	// Without trust nothing is claimed, but skipped.
	claim.Due, claim.Next = claim.Next, claim.Next.Add(time.Minute)
	_, err = s.SetTrust(ctx, ws, contract.TrustEdit)
	must(t, err)
	if ok, err := s.TakeRun(ctx, claim); ok || err != nil {
		t.Errorf("claimed without trust: %v", err)
	}
	claim.Skip, claim.Pause = "no trust", true
	if ok, err := s.TakeRun(ctx, claim); !ok || err != nil {
		t.Errorf("%v", err)
	}
	if a, _ := s.Schedule(ctx, x.ID); a.Status != state.SchedulePaused || a.Reason != "no trust" {
		t.Errorf("%+v", a)
	}

	// A pause holds also at a time that the clock comes to again.
	_, err = s.SetTrust(ctx, ws, contract.TrustTrusted)
	must(t, err)
	_, err = s.ApproveSchedule(ctx, state.ScheduleApproval{ID: x.ID, Digest: x.Digest, Resume: true, Policy: "p", Next: claim.Due})
	must(t, err)
	claim.Skip, claim.Next = "the rules changed", time.Time{}
	if ok, err := s.TakeRun(ctx, claim); ok || err != nil {
		t.Errorf("used twice: %v", err)
	}
	if a, _ := s.Schedule(ctx, x.ID); a.Status != state.SchedulePaused || a.Reason != "the rules changed" {
		t.Errorf("%+v", a)
	}
	runs, err := s.Runs(ctx, ws, x.ID, 10)
	if err != nil || len(runs) != 2 || runs[0].Status != state.RunSkipped || runs[1].Status != state.RunClaimed {
		t.Errorf("%+v, %v", runs, err)
	}

	// A run is settled once; a process that is gone is known.
	r := runs[1]
	r.Status, r.Job = state.RunLaunched, "job_1"
	if ok, err := s.SettleRun(ctx, ws, state.RunClaimed, r); !ok || err != nil {
		t.Error(err)
	}
	var theirs *state.Store
	if w, _ := s.Clockwork(ctx, ws); w.Open[0].Mine {
		theirs = stores[1]
	} else {
		theirs, stores[0] = stores[0], stores[1]
	}
	if w, _ := theirs.Clockwork(ctx, ws); w.Open[0].Mine || w.Open[0].Gone || w.Open[0].Job != "job_1" {
		t.Errorf("%+v", w.Open)
	}
	must(t, stores[0].Close())
	if w, _ := theirs.Clockwork(ctx, ws); w.Open[0].Mine || !w.Open[0].Gone {
		t.Errorf("%+v", w.Open)
	}
	r.Status = state.RunEnded
	for _, want := range []bool{true, false} {
		if ok, err := theirs.SettleRun(ctx, ws, state.RunLaunched, r); ok != want || err != nil {
			t.Errorf("%v, %v", ok, err)
		}
	}
}

// TestSchedulesArePruned: what ended long ago goes, with its runs; what is open stays.
func TestSchedulesArePruned(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	ws := workspace(t, s, "/w", "boot_1")
	_, err := s.SetTrust(ctx, ws, contract.TrustTrusted)
	must(t, err)
	for _, id := range []string{"sched_done", "sched_runs"} {
		x := proposed(t, s, c, ws, id)
		_, err = s.ApproveSchedule(ctx, approval(x, c.now()))
		must(t, err)
		skip := "missed"
		if id == "sched_runs" {
			skip = ""
		}
		_, err = s.TakeRun(ctx, state.Taking{Schedule: id, Workspace: ws, Due: c.now(), Skip: skip})
		must(t, err)
	}
	c.advance(2 * time.Hour)
	must(t, s.ExpireSchedules(ctx, ws))
	keep := state.Retention{Audit: 24 * time.Hour, Idempotency: time.Hour}
	must(t, s.Prune(ctx, keep))
	if list, _ := s.Schedules(ctx, ws, true); len(list) != 2 {
		t.Errorf("%v", list)
	}
	c.advance(48 * time.Hour)
	must(t, s.Prune(ctx, keep))
	list, err := s.Schedules(ctx, ws, true)
	if err != nil || len(list) != 1 || list[0].ID != "sched_runs" || list[0].Status != state.ScheduleExpired {
		t.Errorf("%v, %v", list, err)
	}
	if runs, _ := s.Runs(ctx, ws, "", 10); len(runs) != 1 {
		t.Errorf("%v", runs)
	}
}

// TestSchedulesComeToAnOldState: a database of the version before gets the tables, and keeps
// what it has.
func TestSchedulesComeToAnOldState(t *testing.T) {
	dir := place(t)
	before := -1
	for i, step := range state.Migrations {
		if strings.Contains(step, "CREATE TABLE schedules") {
			before = i
		}
	}
	old, err := sqlitedb.Open(t.Context(), filepath.Join(dir, state.FileName), sqlitedb.Options{ApplicationID: 0x646f646f, Migrations: state.Migrations[:before]})
	must(t, err)
	must(t, old.Write(t.Context(), func(c *sqlitedb.Conn) error {
		_, err := c.Exec(t.Context(), "INSERT INTO todos VALUES ('ws_1', '[]', 1)")
		return err
	}))
	must(t, old.Close())
	c := newClock()
	s := open(t, dir, c)
	if list, _, err := s.Todos(t.Context(), "ws_1"); err != nil || string(list) != "[]" {
		t.Errorf("%s, %v", list, err)
	}
	proposed(t, s, c, workspace(t, s, "/w", "boot_1"), "sched_a")
}
