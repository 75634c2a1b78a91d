package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/plane/schedule"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/sqlitedb"
)

// world is a workspace with a clock that stands still until it is set.
type world struct {
	t        *testing.T
	dir      string // of the installation
	root     string
	at       time.Time
	live     bool // the clock goes, as the bubble's does
	store    *state.Store
	tree     *workspace.Tree
	id       string
	policy   string
	granted  bool
	stale    bool // the server goes by other settings than the file's
	launcher *launcher
}

func (w *world) now() time.Time {
	if w.live {
		return time.Now()
	}
	return w.at
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := &world{
		t: t, dir: filepath.Join(base, "state"), root: filepath.Join(base, "w"), policy: "p1", granted: true,
		at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), launcher: &launcher{jobs: map[string]bool{}},
	}
	must(t, errors.Join(os.Mkdir(w.dir, 0o700), os.MkdirAll(filepath.Join(w.root, "sub"), 0o755), os.WriteFile(filepath.Join(w.root, "file"), nil, 0o644)))
	w.store = w.open()
	w.tree, err = workspace.Open(w.root, workspace.Options{Hidden: []string{w.dir}})
	must(t, err)
	t.Cleanup(func() { _ = w.tree.Close() })
	id := w.tree.Identity()
	ws, _, err := w.store.OpenWorkspace(t.Context(), w.tree.Root(), id.Dev, id.Ino, "boot_1")
	must(t, err)
	w.id = ws.ID
	w.trust(contract.TrustTrusted)
	return w
}

func (w *world) open() *state.Store {
	s, err := state.Open(w.t.Context(), w.dir, state.Options{Now: w.now})
	must(w.t, err)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) trust(t contract.Trust) {
	_, err := w.store.SetTrust(w.t.Context(), w.id, t)
	must(w.t, err)
}

func (w *world) MayRun(context.Context, string, string, string) (bool, error) { return w.granted, nil }

func (w *world) service(store *state.Store) *schedule.Service {
	return schedule.New(schedule.Config{
		Tree: w.tree, State: store, Workspace: w.id, Grants: w, Now: w.now,
		Policy: func(context.Context) (string, error) {
			if w.stale {
				return "", fault.New(contract.Conflict, "the server must be restarted").WithHint("restart it")
			}
			return w.policy, nil
		},
	})
}

func (w *world) spec() schedule.Spec {
	return schedule.Spec{
		Name: "n", Command: "make test", Cwd: ".", Cron: "* * * * *", Timezone: "UTC",
		ExpiresAt: w.at.Add(24 * time.Hour).UnixMilli(), TimeoutMs: 1000, Sandbox: true,
	}
}

// approved is a schedule that the owner made and approved, every minute.
func (w *world) approved(s *schedule.Service) state.Schedule {
	w.t.Helper()
	x, _, err := s.Add(w.t.Context(), contract.Principal{}, true, w.spec())
	must(w.t, err)
	x, err = s.Approve(w.t.Context(), x.ID, x.Digest)
	must(w.t, err)
	return x
}

func (w *world) tick(s *schedule.Service) {
	w.t.Helper()
	must(w.t, s.Tick(w.t.Context(), w.launcher))
}

// history is what happened, the oldest first.
func (w *world) history() []string {
	runs, err := w.store.Runs(w.t.Context(), w.id, "", 100)
	must(w.t, err)
	var list []string
	for i := len(runs) - 1; i >= 0; i-- {
		r := runs[i]
		list = append(list, strings.TrimSpace(r.Due.Format("15:04 ")+string(r.Status)+" "+r.Reason))
	}
	return list
}

func (w *world) wants(list ...string) {
	w.t.Helper()
	got := w.history()
	if len(got) != len(list) {
		w.t.Fatalf("%q, want %q", got, list)
	}
	for i := range list {
		if !strings.HasPrefix(got[i], list[i]) {
			w.t.Errorf("%q, want %q", got[i], list[i])
		}
	}
}

func (w *world) status(id string, want state.ScheduleStatus, reason string) {
	w.t.Helper()
	x, err := w.store.Schedule(w.t.Context(), id)
	must(w.t, err)
	if x.Status != want || !strings.Contains(x.Reason, reason) {
		w.t.Errorf("%s %q, want %s %q", x.Status, x.Reason, want, reason)
	}
}

// launcher keeps what it is asked for.
type launcher struct {
	mu        sync.Mutex
	launched  []schedule.Launch
	jobs      map[string]bool // id -> runs
	cancelled []string
	err       error
	wait      chan struct{}
}

func (l *launcher) Launch(ctx context.Context, x schedule.Launch) (string, error) {
	if l.wait != nil {
		select {
		case <-l.wait:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if err := x.Check(ctx); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return "", l.err
	}
	l.launched = append(l.launched, x)
	id := fmt.Sprint("job_", len(l.launched))
	l.jobs[id] = true
	return id, nil
}

func (l *launcher) Running(job string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.jobs[job]
}

func (l *launcher) Cancel(job string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancelled, l.jobs[job] = append(l.cancelled, job), false
	return nil
}

func (l *launcher) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.jobs)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, what string, err error, code fault.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// propose calls the operation as the gate does, without its rules.
func propose(ctx context.Context, s *schedule.Service, by contract.Principal, args map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	b, err := s.Ops()[0].Bind(raw)
	if err != nil {
		return nil, err
	}
	p, err := b.Prepare(ctx, contract.Call{Principal: by})
	if err != nil {
		return nil, err
	}
	if p.Done == nil {
		return nil, errors.New("the owner would be asked")
	}
	envelope, err := op.Encode(contract.Success("ws_1", "boot_1", *p.Done))
	if err == nil {
		err = s.Ops()[0].Fits(envelope)
	}
	if err != nil {
		return nil, err
	}
	if raw, err = op.Encode(p.Done.Data); err != nil {
		return nil, err
	}
	var data map[string]any
	return data, json.Unmarshal(raw, &data)
}

var remote = contract.Principal{GrantID: "grt_1", ClientID: "client-1", Scopes: contract.NewScopes(contract.AllScopes...)}

// TestPropose: what a client proposes waits, bound to all that the owner will approve, and
// what is out of bounds is refused.
func TestPropose(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	args := func(change map[string]any) map[string]any {
		a := map[string]any{"name": "n", "command": "make", "cron": "30 8 * * *", "expiresAt": w.at.Add(48 * time.Hour).UnixMilli()}
		for k, v := range change {
			a[k] = v
		}
		return a
	}
	d, err := propose(t.Context(), s, remote, args(map[string]any{"timezone": "America/New_York", "cwd": "sub"}))
	must(t, err)
	spec := d["spec"].(map[string]any)
	if d["status"] != "pending" || spec["sandbox"] != true || spec["network"] != false || spec["timeoutMs"] != 300000.0 || spec["cwd"] != "sub" ||
		d["clientId"] != "client-1" || d["grantId"] != "grt_1" || d["policy"] != "p1" || d["root"] != w.tree.Root() || d["warning"] == "" ||
		d["nextAt"] != float64(time.Date(2026, 3, 1, 13, 30, 0, 0, time.UTC).UnixMilli()) || !contract.IsHash(d["digest"].(string)) {
		t.Errorf("%v", d)
	}
	x, err := w.store.Schedule(t.Context(), d["id"].(string))
	must(t, err)
	if p, err := schedule.Read(x); err != nil || p.Dev != d["dev"] || p.Ino != d["ino"] || x.Digest != d["digest"] || !x.Next.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if len(w.launcher.launched) > 0 {
		t.Error("something ran")
	}
	for name, c := range map[string]struct {
		change map[string]any
		code   fault.Code
	}{
		"four fields":      {map[string]any{"cron": "30 8 * *  "}, contract.InvalidInput},
		"six fields":       {map[string]any{"cron": "0 30 8 * * *"}, contract.InvalidInput},
		"a word":           {map[string]any{"cron": "@every 5m"}, contract.InvalidInput},
		"a zone":           {map[string]any{"timezone": "Mars/Olympus"}, contract.InvalidInput},
		"this machine's":   {map[string]any{"timezone": "Local"}, contract.InvalidInput},
		"never":            {map[string]any{"cron": "0 0 31 2 *"}, contract.InvalidInput},
		"not before it":    {map[string]any{"cron": "0 0 1 1 *"}, contract.InvalidInput},
		"at its end":       {map[string]any{"cron": "0 12 * * *", "expiresAt": w.at.Add(24 * time.Hour).UnixMilli()}, contract.InvalidInput},
		"over already":     {map[string]any{"expiresAt": w.at.UnixMilli()}, contract.InvalidInput},
		"too far":          {map[string]any{"expiresAt": w.at.Add(30*24*time.Hour + time.Millisecond).UnixMilli()}, contract.InvalidInput},
		"as far as can be": {map[string]any{"expiresAt": int64(1) << 62}, contract.InvalidInput},
		"bytes":            {map[string]any{"command": strings.Repeat("é", 40_000)}, contract.ResourceLimit},
		"blank":            {map[string]any{"command": " \n"}, contract.InvalidInput},
		"NUL":              {map[string]any{"command": "a\x00b"}, contract.InvalidInput},
		"above":            {map[string]any{"cwd": "../w"}, contract.PathDenied},
		"a secret":         {map[string]any{"cwd": ".ssh"}, contract.SecretPathDenied},
		"a file":           {map[string]any{"cwd": "file"}, contract.PathDenied},
		"nothing":          {map[string]any{"cwd": "none"}, contract.NotFound},
		"no walls":         {map[string]any{"sandbox": false}, contract.Forbidden},
		"at once":          {map[string]any{"timeoutMs": 10}, op.InvalidArgument},
	} {
		_, err := propose(t.Context(), s, remote, args(c.change))
		refused(t, name, err, c.code)
	}
	small := contract.DefaultLimits()
	small.CommandBytes, small.JobWallTimeoutMaxMs = 8192, 60_000
	limited := schedule.New(schedule.Config{
		Tree: w.tree, State: w.store, Workspace: w.id, Now: w.now, Limits: small, Policy: func(context.Context) (string, error) { return "", nil },
	})
	_, err = propose(t.Context(), limited, remote, args(map[string]any{"command": strings.Repeat("x", 8193), "timeoutMs": 1000}))
	refused(t, "the owner's commandBytes", err, contract.ResourceLimit)
	_, err = propose(t.Context(), limited, remote, args(map[string]any{"timeoutMs": 60_001}))
	refused(t, "the owner's timeout", err, contract.InvalidInput)
	if !strings.Contains(err.Error(), "jobWallTimeoutMaxMs") {
		t.Error(err)
	}
	walled := w.spec()
	walled.Sandbox = false
	_, _, err = s.Add(t.Context(), contract.Principal{}, true, walled)
	refused(t, "the owner's, with the sandbox on", err, contract.Forbidden)
	if !strings.Contains(fault.From(err).Hint, "commandSandbox off") {
		t.Error(fault.From(err).Hint)
	}
	unready := schedule.New(schedule.Config{
		Tree: w.tree, State: w.store, Workspace: w.id, Now: w.now, Policy: func(context.Context) (string, error) { return "", nil },
		Ready: func(context.Context) error { return fault.New(contract.NotSupported, "no") }, Unboxed: true,
	})
	_, err = propose(t.Context(), unready, remote, args(nil))
	refused(t, "no sandbox", err, contract.NotSupported)
	_, err = propose(t.Context(), unready, remote, args(map[string]any{"sandbox": false}))
	must(t, err)
	for range 62 {
		_, _, err = s.Add(t.Context(), contract.Principal{}, true, w.spec())
		must(t, err)
	}
	_, err = propose(t.Context(), s, remote, args(nil))
	refused(t, "the 65th", err, contract.ResourceLimit)
}

// TestRuns: what was approved runs at its time, once, and never before it is approved.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	pending, _, err := s.Add(t.Context(), contract.Principal{}, true, w.spec())
	must(t, err)
	x := w.approved(s)
	w.tick(s)
	w.wants()
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.tick(s)
	w.wants("12:01 launched")
	if got := w.launcher.launched; len(got) != 1 || got[0].Schedule != x.ID || got[0].Command != "make test" || !got[0].Sandbox || got[0].Network ||
		got[0].Timeout != time.Second || got[0].Grant != state.PrincipalOwner {
		t.Errorf("%+v", got)
	}
	w.status(pending.ID, state.SchedulePending, "")
	_, err = s.Approve(t.Context(), pending.ID, x.Digest)
	refused(t, "another digest", err, contract.Conflict)

	// It still runs at its next time, and again at the one after.
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.wants("12:01 launched", "12:02 skipped the run before is not over")
	w.launcher.end()
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.wants("12:01 ended", "12:02 skipped", "12:03 launched")

	// A pause stops what comes, not what runs; nothing is made up for.
	_, err = w.store.PauseSchedule(t.Context(), x.ID)
	must(t, err)
	w.at = w.at.Add(5 * time.Minute)
	w.tick(s)
	if _, err = s.Resume(t.Context(), x.ID); err != nil {
		t.Error(err)
	}
	w.launcher.end()
	w.tick(s)
	w.wants("12:01 ended", "12:02 skipped", "12:03 ended")
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.wants("12:01 ended", "12:02 skipped", "12:03 ended", "12:09 launched")

	// Revoking ends what runs.
	_, err = w.store.RevokeSchedule(t.Context(), x.ID)
	must(t, err)
	w.tick(s)
	w.wants("12:01 ended", "12:02 skipped", "12:03 ended", "12:09 cancelled")
	if fmt.Sprint(w.launcher.cancelled) != "[job_3]" {
		t.Errorf("%v", w.launcher.cancelled)
	}
	w.at = w.at.Add(10 * time.Minute)
	w.tick(s)
	if n := len(w.launcher.launched); n != 3 {
		t.Errorf("%d were launched", n)
	}
}

// TestMissed: what came late, or before this scheduler began, is skipped in one row and not
// made up for.
func TestMissed(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	w.approved(s)
	w.at = w.at.Add(2*time.Minute + 500*time.Millisecond) // 12:01 is 60.5 s old
	w.tick(s)
	w.wants("12:01 skipped missed: the scheduler did not run, this time and 1 more")
	w.at = w.at.Add(time.Minute - 500*time.Millisecond)
	w.tick(s)
	w.wants("12:01 skipped", "12:03 launched")
	w.launcher.end()
	w.tick(s)

	w.at = w.at.Add(time.Minute + 5*time.Second) // 12:04:05
	w.tick(w.service(w.store))
	w.wants("12:01 skipped", "12:03 ended", "12:04 skipped missed: the scheduler did not run then")
	w.at = w.at.Add(20 * time.Hour)
	w.tick(s)
	if h := w.history(); !strings.Contains(h[len(h)-1], "at least 999 more") {
		t.Errorf("%q", h)
	}
}

// TestPauses: whatever an approval rested on and is no more pauses a schedule, once and with
// its reason, and only the owner's word lets it go on.
func TestPauses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		reason string
	}{
		"trust":   {func(w *world) { w.trust(contract.TrustEdit) }, "trust is edit"},
		"rules":   {func(w *world) { w.policy = "p2" }, "rules changed"},
		"server":  {func(w *world) { w.stale = true }, "must be restarted"},
		"grant":   {func(w *world) { w.granted = false }, "may not run commands"},
		"payload": {func(w *world) { w.tamper() }, "was changed"},
		"root": {func(w *world) {
			must(w.t, errors.Join(os.Rename(w.root, w.root+"2"), os.Mkdir(w.root, 0o755)))
		}, "moved or replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.service(w.store)
			d, err := propose(t.Context(), s, remote, map[string]any{
				"name": "n", "command": "make", "cron": "* * * * *", "expiresAt": w.at.Add(time.Hour).UnixMilli(),
			})
			must(t, err)
			id := d["id"].(string)
			_, err = s.Approve(t.Context(), id, d["digest"].(string))
			must(t, err)
			w.at = w.at.Add(time.Minute)
			c.change(w)
			w.tick(s)
			w.wants("12:01 skipped")
			w.status(id, state.SchedulePaused, c.reason)
			if len(w.launcher.launched) != 0 {
				t.Error("it ran")
			}
			_, err = s.Resume(t.Context(), id)
			if name == "rules" { // the owner looked at them
				must(t, err)
				w.at = w.at.Add(time.Minute)
				w.tick(s)
				w.wants("12:01 skipped", "12:02 launched")
			} else if err == nil {
				t.Error("it goes on")
			}
		})
	}
}

// tamper changes what a schedule says, past the rules of the table.
func (w *world) tamper() {
	must(w.t, w.store.Write(w.t.Context(), func(ctx context.Context, c *sqlitedb.Conn) error {
		for _, q := range []string{"DROP TRIGGER schedules_fixed", `UPDATE schedules SET payload = replace(payload, '"make"', '"evil"')`} {
			if _, err := c.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}))
}

// TestApprovalNeedsSavedTrust: personal access does not count, nor does a grant that ended.
func TestApprovalNeedsSavedTrust(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	must(t, w.store.SetAccessMode(t.Context(), contract.AccessPersonal))
	w.trust(contract.TrustEdit)
	d, err := propose(t.Context(), s, remote, map[string]any{"name": "n", "command": "make", "cron": "* * * * *", "expiresAt": w.at.Add(time.Hour).UnixMilli()})
	must(t, err)
	id, digest := d["id"].(string), d["digest"].(string)
	_, err = s.Approve(t.Context(), id, digest)
	refused(t, "edit", err, contract.Forbidden)
	w.trust(contract.TrustTrusted)
	w.granted = false
	_, err = s.Approve(t.Context(), id, digest)
	refused(t, "grant", err, contract.Forbidden)
	nobody := schedule.New(schedule.Config{Tree: w.tree, State: w.store, Workspace: w.id, Now: w.now, Policy: func(context.Context) (string, error) { return "p1", nil }})
	_, err = nobody.Approve(t.Context(), id, digest)
	refused(t, "no grants at all", err, contract.Forbidden)
	w.granted = true
	_, err = s.Approve(t.Context(), id, digest)
	must(t, err)

	// The stdio client is on this machine and has no grant that could end.
	w.granted = false
	d, err = propose(t.Context(), s, contract.LocalOwner(), map[string]any{"name": "n", "command": "make", "cron": "* * * * *", "expiresAt": w.at.Add(time.Hour).UnixMilli()})
	must(t, err)
	_, err = nobody.Approve(t.Context(), d["id"].(string), d["digest"].(string))
	must(t, err)
}

// TestOneClientTakesNotAllRoom: what one client proposed and nobody decided on keeps neither
// others nor the owner from theirs.
func TestOneClientTakesNotAllRoom(t *testing.T) {
	w := newWorld(t)
	w.trust(contract.TrustTrusted)
	s := w.service(w.store)
	by := func(who contract.Principal) (id, digest string, err error) {
		d, err := propose(t.Context(), s, who, map[string]any{"name": "n", "command": "make", "cron": "* * * * *", "expiresAt": w.at.Add(time.Hour).UnixMilli()})
		if err != nil {
			return "", "", err
		}
		return d["id"].(string), d["digest"].(string), nil
	}
	again := remote
	again.GrantID = "grt_2" // the same client after another consent
	var id, digest string
	for i := range schedule.MostPending {
		who := remote
		if i%2 == 1 {
			who = again
		}
		var err error
		id, digest, err = by(who)
		must(t, err)
	}
	for _, who := range []contract.Principal{remote, again} {
		_, _, err := by(who)
		refused(t, "one more", err, contract.ResourceLimit)
		if hint := fault.From(err).Hint; !strings.Contains(hint, "dodo schedule") || !strings.Contains(err.Error(), fmt.Sprint(schedule.MostPending)) {
			t.Errorf("%v: %s", err, hint)
		}
	}
	other := remote
	other.ClientID = "client-2"
	for _, who := range []contract.Principal{other, contract.LocalOwner()} {
		_, _, err := by(who)
		must(t, err)
	}
	for range schedule.MostPending + 1 {
		_, _, err := s.Add(t.Context(), contract.Principal{}, true, w.spec())
		must(t, err)
	}
	_, err := s.Approve(t.Context(), id, digest)
	must(t, err)
	_, _, err = by(remote)
	must(t, err)
}

// TestUncertain: a time that a process claimed before it ended is never used again, and the
// job of one that launched is over with it.
func TestUncertain(t *testing.T) {
	w := newWorld(t)
	theirs := w.open()
	s := w.service(w.store)
	a, b := w.approved(s), w.approved(s)
	w.at = w.at.Add(time.Minute)
	for _, x := range []state.Schedule{a, b} {
		taken, err := theirs.TakeRun(t.Context(), state.Taking{Schedule: x.ID, Workspace: w.id, Due: w.at, Next: w.at.Add(time.Minute)})
		if err != nil || !taken {
			t.Fatal(taken, err)
		}
	}
	_, err := theirs.SettleRun(t.Context(), w.id, state.RunClaimed, state.Run{Schedule: b.ID, Due: w.at, Status: state.RunLaunched, Job: "job_9"})
	must(t, err)
	w.at = w.at.Add(time.Minute)
	w.tick(s) // they live: both are busy
	runs, err := w.store.Runs(t.Context(), w.id, "", 10)
	must(t, err)
	for _, r := range runs {
		if r.Due.Equal(w.at) && r.Status != state.RunSkipped {
			t.Errorf("%+v", r)
		}
	}
	must(t, theirs.Close())
	w.tick(s)
	for id, want := range map[string]state.RunStatus{a.ID: state.RunUncertain, b.ID: state.RunEnded} {
		runs, err := w.store.Runs(t.Context(), w.id, id, 10)
		if err != nil || len(runs) != 2 || runs[1].Status != want {
			t.Errorf("%+v, want %s, %v", runs, want, err)
		}
	}
	if len(w.launcher.launched) != 0 {
		t.Error("something was made up for")
	}
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	if len(w.launcher.launched) != 2 {
		t.Errorf("%v", w.launcher.launched)
	}
}

// TestTwoSchedulers: two processes on one workspace start each time once.
func TestTwoSchedulers(t *testing.T) {
	w := newWorld(t)
	schedulers := []*schedule.Service{w.service(w.store), w.service(w.open())}
	for range 5 {
		w.approved(schedulers[0])
	}
	for range 3 {
		w.at = w.at.Add(time.Minute)
		var wait sync.WaitGroup
		for _, s := range schedulers {
			wait.Go(func() {
				if err := s.Tick(t.Context(), w.launcher); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		w.launcher.end()
		for _, s := range schedulers {
			w.tick(s)
		}
	}
	if n := len(w.launcher.launched); n != 15 {
		t.Errorf("%d launches, want 15", n)
	}
}

// TestFails: a command that cannot be started is recorded with its code, and nothing of the
// cause.
func TestFails(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	x := w.approved(s)
	w.launcher.err = fault.Wrap(contract.NotSupported, errors.New("/private/path"), "there is no sandbox here")
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.launcher.err = errors.New("/private/path")
	w.at = w.at.Add(time.Minute)
	w.tick(s)
	w.wants("12:01 failed NOT_SUPPORTED: there is no sandbox here", "12:02 failed INTERNAL_ERROR")
	if h := w.history(); strings.Contains(fmt.Sprint(h), "private") {
		t.Errorf("%q", h)
	}
	w.at = w.at.Add(24 * time.Hour)
	w.tick(s)
	w.status(x.ID, state.ScheduleExpired, "")
}

// TestWaitingLaunch: a launch that waits for its turn holds up no other schedule and is not
// taken for one that was lost.
func TestWaitingLaunch(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	w.approved(s)
	w.launcher.wait = make(chan struct{})
	w.at = w.at.Add(time.Minute)
	must(t, s.Look(t.Context(), w.launcher))
	w.at = w.at.Add(time.Minute)
	must(t, s.Look(t.Context(), w.launcher))
	w.wants("12:01 claimed", "12:02 skipped the run before is not over")
	close(w.launcher.wait)
	w.tick(s)
	w.tick(s)
	w.wants("12:01 launched", "12:02 skipped")
}

// TestWaitedTooLong: when its turn comes, a launch is held against everything once more.
func TestWaitedTooLong(t *testing.T) {
	for want, change := range map[string]func(w *world, id string){
		"12:01 failed CONFLICT: the schedule is revoked": func(w *world, id string) {
			_, err := w.store.RevokeSchedule(w.t.Context(), id)
			must(w.t, err)
		},
		"12:01 failed FORBIDDEN: the workspace's saved trust is inspect": func(w *world, _ string) { w.trust(contract.TrustInspect) },
		"12:01 failed TIMEOUT: its turn came too late":                   func(w *world, _ string) { w.at = w.at.Add(61 * time.Second) },
	} {
		w := newWorld(t)
		s := w.service(w.store)
		x := w.approved(s)
		w.launcher.wait = make(chan struct{})
		w.at = w.at.Add(time.Minute)
		must(t, s.Look(t.Context(), w.launcher))
		change(w, x.ID)
		close(w.launcher.wait)
		s.Wait()
		w.wants(want)
		if len(w.launcher.launched) > 0 {
			t.Error("it was started")
		}
	}
}

// TestEndWhileWaiting: a scheduler that ends leaves no launch behind.
func TestEndWhileWaiting(t *testing.T) {
	w := newWorld(t)
	s := w.service(w.store)
	w.approved(s)
	w.launcher.wait = make(chan struct{})
	w.at = w.at.Add(time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	must(t, s.Look(ctx, w.launcher))
	stop()
	s.Wait()
	w.wants("12:01 failed the server ended before it was started")
}

// TestRunTicks: Run looks every second, and leaves nothing behind when it is told to end.
func TestRunTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.at, w.live = time.Now(), true
		s := w.service(w.store)
		ctx, stop := context.WithCancel(t.Context())
		x := w.approved(s)
		done := make(chan error)
		go func() { done <- s.Run(ctx, w.launcher) }()
		time.Sleep(time.Until(x.Next) + 1100*time.Millisecond)
		synctest.Wait()
		w.launcher.mu.Lock()
		if len(w.launcher.launched) != 1 {
			t.Errorf("%v", w.launcher.launched)
		}
		w.launcher.mu.Unlock()
		stop()
		must(t, <-done)
		must(t, w.store.Close())
	})
}
