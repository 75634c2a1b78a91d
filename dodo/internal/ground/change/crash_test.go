package change_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
)

// twenty prepares a workspace and a change of 20 files with every action.
func (w *world) twenty() []obj {
	w.t.Helper()
	var ops []obj
	for i := range 7 {
		name := fmt.Sprintf("mod/%d.txt", i)
		w.write(name, strings.Repeat(fmt.Sprintf("old %d\n", i), 1500))
		ops = append(ops, obj{"op": "replace_file", "path": name, "content": strings.Repeat(fmt.Sprintf("new %d\n", i), 1500)})
		ops = append(ops, obj{"op": "create", "path": fmt.Sprintf("made/%d/new.txt", i), "content": fmt.Sprint("fresh ", i), "createParents": true})
	}
	for i := range 3 {
		name := fmt.Sprintf("del/%d.txt", i)
		w.write(name, fmt.Sprint("goes ", i))
		ops = append(ops, obj{"op": "delete", "path": name})
		name = fmt.Sprintf("from/%d.txt", i)
		w.write(name, fmt.Sprint("moves ", i))
		ops = append(ops, obj{"op": "move", "path": name, "destPath": fmt.Sprintf("to/%d.txt", i)})
	}
	must(w.t, os.MkdirAll(w.path("to"), 0o755))
	return ops
}

func (w *world) plan(ops []obj) obj {
	w.t.Helper()
	d := w.call("preview_changes", obj{"operations": ops})
	return obj{"planId": d.str("planId"), "planHash": d.str("planHash"), "idempotencyKey": "12345678"}
}

// visible is the tree without stages.
func (w *world) visible() map[string]string {
	w.t.Helper()
	list := w.tree()
	maps.DeleteFunc(list, func(name, _ string) bool { return strings.HasPrefix(filepath.Base(name), ".dodo-") })
	return list
}

// eachIsOneOf holds that every file is as before or as after. A move has two names.
func eachIsOneOf(t testing.TB, now, before, after map[string]string) {
	t.Helper()
	for name, text := range now {
		if b, there := before[name]; there && b == text {
			continue
		}
		if a, there := after[name]; there && a == text {
			continue
		}
		t.Errorf("%s is neither as before nor as after: %.60q", name, text)
	}
	for name := range before {
		_, later := after[name]
		if _, there := now[name]; !there && later {
			t.Errorf("%s is gone", name)
		}
	}
}

type crash struct{}

// attempt applies a plan while f decides what fails; died says that the process "died".
func (w *world) attempt(plan obj, f func(string) error) (died bool, err error) {
	w.svc.FailAt(f)
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(crash); !ours {
				panic(p)
			}
			died = true
		}
	}()
	_, err = w.try("apply_changes", plan)
	return false, err
}

var errInjected = errors.New("injected")

// nth fails at the nth point it meets, and counts them.
func nth(n int, how func() error) (f func(string) error, count *int) {
	count = new(int)
	return func(point string) error {
		*count++
		if *count == n+1 {
			return how()
		}
		return nil
	}, count
}

// TestDyingAnywhere dies at every point of a change in turn: the next process finds all of
// it or nothing, and nothing else.
func TestDyingAnywhere(t *testing.T) {
	w := newWorld(t)
	ops := w.twenty()
	before := w.tree()
	var after map[string]string
	taken, completed := 0, 0
	for n := 0; ; n++ {
		f, count := nth(n, func() error { panic(crash{}) })
		died, err := w.attempt(w.plan(ops), f)
		if !died {
			must(t, err)
			if *count > n {
				t.Fatal("the point was met and nothing happened")
			}
			break
		}
		w.reopen()
		must(t, w.svc.Reconcile(context.Background()))
		now := w.tree()
		w.clean()
		last := w.call("change_history", obj{"limit": 1})["changesets"].([]any)
		status := ""
		if len(last) > 0 {
			status = data(last[0].(map[string]any)).str("status")
		}
		if strings.HasPrefix(now["mod/0.txt"], "new") {
			if status != "committed" {
				t.Fatalf("at point %d: files are as after, the history says %s", n, status)
			}
			completed++
			after = now
			w.call("rollback_changes", obj{"changesetId": last[0].(map[string]any)["changesetId"], "idempotencyKey": "12345678"})
			same(t, before, w.tree())
		} else {
			taken++
			same(t, before, now)
			if status == "committed" || status == "committing" {
				t.Fatalf("at point %d: files are as before, the history says %s", n, status)
			}
		}
		if t.Failed() {
			t.Fatalf("died at point %d", n)
		}
	}
	if taken == 0 || completed == 0 || after["mod/0.txt"][:3] != "new" {
		t.Errorf("%d taken back, %d completed", taken, completed)
	}
}

// TestFailingAnywhere fails at every point in turn: everything is as before at once.
func TestFailingAnywhere(t *testing.T) {
	w := newWorld(t)
	ops := w.twenty()
	before := w.tree()
	for n := 0; ; n++ {
		point := ""
		f, count := nth(n, func() error { return errInjected })
		_, err := w.attempt(w.plan(ops), func(p string) error {
			if p == "lease" {
				return nil // nothing fails there: see TestExternalReplacement
			}
			if err := f(p); err != nil {
				point = p
				return err
			}
			return nil
		})
		if *count <= n || point == "committed" {
			must(t, err)
			break
		}
		if !errors.Is(err, errInjected) {
			t.Fatalf("at %s: %v", point, err)
		}
		same(t, before, w.tree())
		if t.Failed() {
			t.Fatalf("failed at %s (%d)", point, n)
		}
	}
}

// stuck makes a change that fails half-way and cannot be taken back.
func (w *world) stuck(ops []obj) string {
	w.t.Helper()
	published := 0
	_, err := w.attempt(w.plan(ops), func(p string) error {
		if p == "publish" {
			published++
		}
		if p == "undo" || published == 16 {
			return errInjected
		}
		return nil
	})
	f := refused(w.t, err, contract.PartialRecoveryRequired)
	w.svc.FailAt(nil)
	id, _ := f.Detail["changesetId"].(string)
	if id == "" || f.Detail["conflicts"] == nil {
		w.t.Fatalf("detail %v", f.Detail)
	}
	return id
}

func TestRecoverForwardBackResolve(t *testing.T) {
	ctx := context.Background()
	for _, way := range []change.Way{change.Forward, change.Back, change.Resolve} {
		t.Run(string(way), func(t *testing.T) {
			w := newWorld(t)
			ops := w.twenty()
			before := w.visible()
			id := w.stuck(ops)
			half := w.visible()
			_, err := w.try("write_file", obj{"path": "other", "content": "x"})
			f := refused(t, err, contract.RecoveryRequired)
			if !strings.Contains(f.Hint, id) {
				t.Errorf("the hint is %q", f.Hint)
			}
			w.reopen()
			must(t, w.svc.Reconcile(ctx)) // not an error, and it decides nothing
			same(t, half, w.visible())
			list, err := change.Everywhere(ctx, w.state, "")
			must(t, err)
			if len(list) != 1 || list[0].ID != id {
				t.Fatalf("waiting: %v", list)
			}
			r, err := w.svc.Recover(ctx, id, way)
			must(t, err)
			w.clean0(t)
			switch way {
			case change.Forward:
				if r.Status != change.Committed {
					t.Errorf("status %s", r.Status)
				}
				w.holds("mod/6.txt", strings.Repeat("new 6\n", 1500))
				w.holds("to/2.txt", "moves 2")
				w.absent("del/2.txt")
				w.holds("made/6/new.txt", "fresh 6")
			case change.Back:
				same(t, before, w.visible())
			case change.Resolve:
				same(t, half, w.visible())
			}
			w.call("write_file", obj{"path": "other", "content": "x"})
			w.clean()
			_, err = w.svc.Recover(ctx, id, way)
			refused(t, err, contract.Conflict)
		})
	}
}

// TestOutcome: of a call whose process died the next one learns from the journal how it ended.
func TestOutcome(t *testing.T) {
	outcome := func(w *world, name string, args obj) (contract.Outcome[any], error) {
		t.Helper()
		raw, err := json.Marshal(args)
		must(t, err)
		for _, o := range w.ops {
			if o.Name == name {
				b, err := o.Bind(raw)
				must(t, err)
				return b.Outcome(context.Background(), contract.Call{Principal: client})
			}
		}
		t.Fatal(name)
		return contract.Outcome[any]{}, nil
	}
	for point, done := range map[string]bool{"begin": false, "publish": false, "committed": true} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			die := func(name string, args obj) {
				t.Helper()
				func() {
					defer func() { _ = recover() }()
					w.svc.FailAt(func(p string) error {
						if p == point {
							panic(crash{})
						}
						return nil
					})
					_, _ = w.try(name, args)
				}()
				w.reopen()
			}
			want := func(name string, args obj, is string) {
				t.Helper()
				o, err := outcome(w, name, args)
				must(t, err)
				if !o.Known || (o.Done != nil) != done {
					t.Fatalf("%s that died at %s: %+v", name, point, o)
				}
				if done && !strings.Contains(fmt.Sprintf("%+v", *o.Done), is) {
					t.Errorf("it answers %+v", *o.Done)
				}
			}
			w.write("f", "old")
			w.write("g", "gone")
			plan := w.plan([]obj{{"op": "replace_file", "path": "f", "content": "new"}, {"op": "create", "path": "d/n", "content": "n", "createParents": true}, {"op": "move", "path": "g", "destPath": "h"}})
			die("apply_changes", plan)
			want("apply_changes", plan, "Files:[{Path:f ")
			_, err := w.try("apply_changes", plan)
			refused(t, err, contract.PlanExpired) // of another epoch, or applied
			c := w.call("write_file", obj{"path": "f", "content": "newer"})
			undo := obj{"changesetId": c.str("changesetId"), "idempotencyKey": "12345678"}
			die("rollback_changes", undo)
			want("rollback_changes", undo, "Restored:[f]")
			if !done {
				w.call("rollback_changes", undo) // as if it were new
			}
			list, err := w.svc.History(context.Background(), "", 1)
			must(t, err)
			w.call("rollback_changes", obj{"changesetId": list[0].ID, "idempotencyKey": "12345679"})
			if o, err := outcome(w, "rollback_changes", undo); err != nil || o.Known {
				t.Errorf("a rollback that was taken back may be another call's: %+v %v", o, err)
			}
		})
	}
	w := newWorld(t)
	plan := w.plan(w.twenty())
	published := 0
	_, err := w.attempt(plan, func(p string) error {
		if p == "publish" {
			published++
		}
		if p == "undo" || published == 16 {
			return errInjected
		}
		return nil
	})
	refused(t, err, contract.PartialRecoveryRequired)
	w.svc.FailAt(nil)
	_, err = outcome(w, "apply_changes", plan)
	refused(t, err, contract.RecoveryRequired)
}

// clean0 lets a next change sweep: recovery forward leaves the stages to it.
func (w *world) clean0(t testing.TB) {
	t.Helper()
	must(t, w.svc.Reconcile(context.Background()))
	w.clean()
}

// TestRecoverTouchesNothingUnclear: a file that somebody changed meanwhile is neither state.
func TestRecoverTouchesNothingUnclear(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	id := w.stuck(w.twenty())
	w.write("mod/0.txt", "by hand")
	half := w.visible()
	for _, way := range []change.Way{change.Forward, change.Back} {
		_, err := w.svc.Recover(ctx, id, way)
		refused(t, err, contract.Conflict)
		same(t, half, w.visible())
	}
	_, err := w.svc.Recover(ctx, id, change.Resolve)
	must(t, err)
	w.holds("mod/0.txt", "by hand")
	w.clean()
}

// TestDyingThenHandsOn: after a process died on the way somebody changes a file that it had
// replaced. Only the owner can say what is right, and only this workspace is blocked.
func TestDyingThenHandsOn(t *testing.T) {
	w := newWorld(t)
	ops := w.twenty()
	published := 0
	died, _ := w.attempt(w.plan(ops), func(p string) error {
		if p == "publish" {
			if published++; published == 16 {
				panic(crash{})
			}
		}
		return nil
	})
	if !died {
		t.Fatal("it did not die")
	}
	w.write("mod/0.txt", "by hand")
	_, err := w.try("write_file", obj{"path": "other", "content": "x"})
	f := refused(t, err, contract.RecoveryRequired)
	w.holds("mod/0.txt", "by hand")
	elsewhere := worldAt(t, w.dir, realTemp(t))
	elsewhere.call("write_file", obj{"path": "other", "content": "x"})
	id := f.Detail["changesets"].([]string)[0]
	must(t, os.WriteFile(w.path("mod/0.txt"), []byte(strings.Repeat("old 0\n", 1500)), 0o644))
	_, err = w.svc.Recover(context.Background(), id, change.Back)
	must(t, err)
	w.absent("made")
	w.clean()
}

// TestDyingThenShut: after a process died on the way a directory of its change became a link,
// which file tools never follow. The owner is asked, and can leave it at that.
func TestDyingThenShut(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	published := 0
	died, _ := w.attempt(w.plan(w.twenty()), func(p string) error {
		if p == "publish" {
			if published++; published == 16 {
				panic(crash{})
			}
		}
		return nil
	})
	if !died {
		t.Fatal("it did not die")
	}
	must(t, os.Rename(w.path("mod"), w.path("aside")))
	must(t, os.Symlink("aside", w.path("mod")))
	w.svc.FailAt(nil)
	_, err := w.try("write_file", obj{"path": "other", "content": "x"})
	id := refused(t, err, contract.RecoveryRequired).Detail["changesets"].([]string)[0]
	_, err = w.svc.Recover(ctx, id, change.Back)
	refused(t, err, contract.Conflict)
	_, err = w.svc.Recover(ctx, id, change.Resolve)
	must(t, err)
	w.call("write_file", obj{"path": "other", "content": "x"})
	w.holds("made/0/new.txt", "fresh 0")
	w.holds("aside/0.txt", strings.Repeat("new 0\n", 1500))
	for _, dir := range []string{"made/0", "del"} {
		list, err := os.ReadDir(w.path(dir))
		must(t, err)
		for _, e := range list {
			if strings.HasPrefix(e.Name(), ".dodo-") {
				t.Errorf("%s/%s was left", dir, e.Name())
			}
		}
	}
}

// The child of the tests with several processes.

const childVar = "DODO_CHANGE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVar) != "" {
		child()
		return
	}
	os.Exit(m.Run())
}

func child() {
	t := &childT{}
	dir, root := os.Args[1], os.Args[2]
	w := &world{t: t, dir: dir, root: root, lim: contract.DefaultLimits()}
	w.open()
	switch os.Args[3] {
	case "apply":
		p, err := w.prepare(client, "apply_changes", obj{"planId": os.Args[4], "planHash": os.Args[5], "idempotencyKey": "12345678"})
		must(t, err)
		fmt.Println("go")
		_, err = p.Run(context.Background())
		must(t, err)
		fmt.Println("done")
	case "write":
		w.writer(os.Args[4], os.Args[5], os.Args[6])
	}
	w.close()
}

// childT ends the child when something fails.
type childT struct{ testing.TB }

func (*childT) Helper()        {}
func (*childT) Cleanup(func()) {}
func (*childT) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
func (t *childT) Fatal(args ...any)                 { t.Fatalf("%v", args) }
func (t *childT) Errorf(format string, args ...any) { t.Fatalf(format, args...) }

func spawn(t testing.TB, w *world, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	c := exec.Command(self, append([]string{w.dir, w.root}, args...)...)
	c.Env = append(os.Environ(), childVar+"=1")
	c.Stderr = os.Stderr
	return c
}

// TestKillNine kills a real process at random moments of a change of 20 files. With -short
// and under the race detector 20 times, otherwise 200.
func TestKillNine(t *testing.T) {
	rounds := 200
	if testing.Short() || raceEnabled {
		rounds = 20
	}
	w := newWorld(t)
	ops := w.twenty()
	before := w.tree()
	plan := w.plan(ops)
	start := time.Now()
	c := w.call("apply_changes", plan)
	span := time.Since(start) * 5 / 4
	after := w.tree()
	undo := func(id any) {
		w.call("rollback_changes", obj{"changesetId": id, "idempotencyKey": "12345678"})
	}
	undo(c["changesetId"])
	same(t, before, w.tree())

	forward, back, untouched, between := 0, 0, 0, 0
	for range rounds {
		plan := w.plan(ops)
		w.closeKeep()
		cmd := spawn(t, w, "apply", plan["planId"].(string), plan["planHash"].(string))
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "go" {
			t.Fatalf("the child said %q", lines.Text())
		}
		time.Sleep(rand.N(span))
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		now := w.visible()
		eachIsOneOf(t, now, before, after)
		w.openAgain()
		must(t, w.svc.Reconcile(context.Background()))
		w.clean()
		got := w.tree()
		list, err := w.svc.History(context.Background(), "", 1)
		must(t, err)
		switch {
		case maps.Equal(got, after):
			if !maps.Equal(now, after) {
				t.Error("it was completed though something was missing")
			}
			forward++
			undo(list[0].ID)
		case maps.Equal(got, before):
			if maps.Equal(now, before) {
				untouched++
			} else {
				between++
			}
			back++
		default:
			same(t, before, got)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d kills: %d came to the end, %d taken back (%d of them with something to undo)", rounds, forward, back, between)
	if rounds == 200 && between == 0 {
		t.Error("no kill hit the change itself")
	}
}

// closeKeep and openAgain let another process have the workspace in the same epoch.
func (w *world) closeKeep() { w.close() }
func (w *world) openAgain() {
	w.epoch--
	w.open()
}
