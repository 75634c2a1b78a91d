package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/cli"
)

// TestScheduledCommand goes the whole way: what is proposed runs when the owner has approved
// it and its minute comes, as a job in the walls, once and without a network; what was not
// approved, or was revoked with the CLI, does not.
func TestScheduledCommand(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "trust", "--mode", "trusted", "--root", dir, "--yes")
	p := &program{env: m.Env(), cwd: "/", streams: &cli.Streams{}}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(nil)
	var shift atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	store, err := state.Open(t.Context(), in.dir, state.Options{Existing: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	in.store.Close()
	in.store = store
	in.walls.box = sandbox.New(sandbox.Options{Path: filepath.SplitList(os.Getenv("PATH")), Hidden: []string{in.dir}, Helper: built.Path(t)})
	s, err := in.serve(t.Context(), opening{root: dir, surface: surface.Full, log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.end(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	ws := s.host.Active()
	clock := schedule.New(schedule.Config{
		Tree: ws.Tree, State: store, Workspace: ws.ID, Now: now,
		Policy: func(ctx context.Context) (string, error) { return in.rulesDigest(ctx, ws.ID) },
	})
	propose := func(name, command string) string {
		t.Helper()
		x, _, err := clock.Add(t.Context(), contract.LocalOwner(), false, schedule.Spec{
			Name: name, Command: command, Cwd: "sub", Cron: "* * * * *", Timezone: "UTC", ExpiresAt: now().Add(72 * time.Hour).UnixMilli(), TimeoutMs: 60_000, Sandbox: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	approved := propose("approved", "echo ran >> ran; grep -c : /proc/net/dev > devices; cat /etc/hostname ~/.ssh/* 2>&1 | head -1")
	propose("ignored", "echo ran >> ignored")
	revoked := propose("revoked", "echo ran >> revoked")
	for _, id := range []string{approved, revoked} {
		x, err := store.Schedule(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		m.ok(nil, "schedule", "approve", id, "--digest", x.Digest)
	}
	m.ok(nil, "schedule", "revoke", revoked)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	jobs := ws.Jobs.(*job.Service)
	// The next minute comes soon, however long all that took. One that passed meanwhile was
	// missed and is skipped.
	soon := now()
	shift.Add(int64(soon.Truncate(time.Minute).Add(55 * time.Second).Sub(soon)))
	go func() { ended <- clock.Run(ctx, launches{jobs}) }()
	end := time.Now().Add(60 * time.Second)
	for ; ; time.Sleep(100 * time.Millisecond) {
		runs, err := store.Runs(t.Context(), ws.ID, approved, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) > 0 && runs[0].Job != "" && !jobs.Running(runs[0].Job) {
			j, err := jobs.Job(t.Context(), runs[0].Job)
			if err != nil || j.Status != job.Exited || j.Isolation != sandbox.Full {
				t.Errorf("%+v %v", j, err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it did not run: %+v", runs)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if m.read("work/sub/ran") != "ran\n" || strings.TrimSpace(m.read("work/sub/devices")) != "1" { // loopback alone
		t.Errorf("%q %q", m.read("work/sub/ran"), m.read("work/sub/devices"))
	}
	for _, name := range []string{"ignored", "revoked"} {
		if _, err := os.Lstat(filepath.Join(dir, "sub", name)); err == nil {
			t.Errorf("what was %s ran", name)
		}
	}
}

// TestRulesOfAServer: where the settings in the file are not those that a server goes by, it
// starts nothing, and only a restart helps.
func TestRulesOfAServer(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	p := &program{env: m.Env(), cwd: "/", streams: &cli.Streams{}}
	server, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.close(nil)
	w, err := server.workspaceAt(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	before, err := server.rulesDigest(t.Context(), w.ID)
	if err != nil {
		t.Fatal(err)
	}
	m.ok(nil, "config", "set", "limits.searchResultsMax", "50") // says nothing about commands
	if now, err := server.rulesDigest(t.Context(), w.ID); err != nil || now != before {
		t.Errorf("%v", err)
	}
	m.ok(nil, "config", "set", "jobNetwork", "host")
	if _, err := server.rulesDigest(t.Context(), w.ID); !errors.Is(err, contract.Conflict) || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("%v", err)
	}
	again, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.close(nil)
	if now, err := again.rulesDigest(t.Context(), w.ID); err != nil || now == before {
		t.Errorf("%v", err)
	}
	m.ok(nil, "config", "set", "jobNetwork", "proxy")
	if now, err := server.rulesDigest(t.Context(), w.ID); err != nil || now != before {
		t.Errorf("%v", err)
	}
}

// TestScheduleWithoutWalls: where nothing can be confined no command is scheduled to be, by a
// client or by the owner.
func TestScheduleWithoutWalls(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	p := &program{env: m.Env(), cwd: "/", streams: &cli.Streams{}}
	in, err := p.install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer in.close(nil)
	tree, _, _, err := in.tree(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	add := func(helper string, owner bool) error {
		in.walls.box = sandbox.New(sandbox.Options{Helper: helper})
		_, _, err := in.schedules(tree, in.store.WorkspaceID(tree.Root())).Add(t.Context(), contract.LocalOwner(), owner, schedule.Spec{
			Name: "x", Command: "true", Cwd: ".", Cron: "* * * * *", Timezone: "UTC", ExpiresAt: time.Now().Add(72 * time.Hour).UnixMilli(), TimeoutMs: 60_000, Sandbox: true,
		})
		return err
	}
	for _, owner := range []bool{true, false} {
		if err := add("/bin/false", owner); !errors.Is(err, contract.NotSupported) {
			t.Errorf("%v", err)
		}
		if err := add(built.Path(t), owner); err != nil {
			t.Errorf("%v", err)
		}
	}
}
