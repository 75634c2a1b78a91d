package job_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/state"
)

// A door is a gate over a world, and the authority it asks.
type door struct {
	*world
	*gate.Gate
	turns gate.Turns
	trust contract.Trust
}

func (d *door) Principal(context.Context, string) (contract.Principal, error) { return client, nil }

func (d *door) Standing(context.Context, contract.Principal, string) (gate.Standing, error) {
	return gate.Standing{Scopes: contract.NewScopes(contract.AllScopes...), Trust: d.trust}, nil
}

func (d *door) Lease(context.Context, contract.Principal, string) (gate.Workspace, func(), error) {
	return gate.Workspace{ID: "ws_1", Epoch: "boot_1", Turns: &d.turns, Lookup: func(name string) (contract.Op, bool) {
		for _, o := range d.ops {
			if o.Name == name {
				return o, true
			}
		}
		return contract.Op{}, false
	}}, func() {}, nil
}

func newDoor(w *world) *door {
	d := &door{world: w, trust: contract.TrustTrusted}
	d.Gate = gate.New(gate.Config{Authority: d, Workspaces: d, State: w.state, Limits: func() contract.Limits { return w.lim }})
	return d
}

func (d *door) run(name string, args any) *contract.Reply {
	d.t.Helper()
	raw, err := json.Marshal(args)
	must(d.t, err)
	id, epoch := "ws_1", "boot_1"
	return d.Run(context.Background(), gate.Request{Op: name, Context: gate.Context{WorkspaceID: &id, WorkspaceEpoch: &epoch}, Args: raw})
}

// runs counts how often a command was run that notes it.
func (w *world) runs() int {
	b, _ := os.ReadFile(filepath.Join(w.root, "runs"))
	return strings.Count(string(b), "x")
}

// TestKeyRunsOnce: the same call with the same key is run once and answered again.
func TestKeyRunsOnce(t *testing.T) {
	w := newWorld(t)
	d := newDoor(w)
	w.write("recipe.sh", "#!/bin/sh\necho x >> runs\n", 0o755)
	for i, c := range []struct {
		op   string
		args obj
	}{
		{"run_command", obj{"command": "echo x >> runs; echo out; exit 2", "idempotencyKey": "the key 1"}},
		{"exec_command", obj{"program": "./recipe.sh", "idempotencyKey": "the key 1"}},
	} {
		var first, again data
		for _, into := range []*data{&first, &again} {
			r := d.run(c.op, c.args)
			if !r.OK {
				t.Fatalf("%s: %+v", c.op, r.Error)
			}
			*into = decode(t, *r.Data)
			w.ended(into.str("jobId"))
		}
		if first["replayed"] != false || again["replayed"] != true || first.str("jobId") != again.str("jobId") || first.str("stdout") != again.str("stdout") || w.runs() != i+1 {
			t.Errorf("%s: %v, %v, run %d times", c.op, first, again, w.runs())
		}
		c.args["cwd"] = "."
		c.args["timeoutMs"] = 5000
		if r := d.run(c.op, c.args); r.OK || r.Error.Code != contract.IdempotencyConflict {
			t.Errorf("%s: %+v", c.op, r.Error)
		}
	}
}

// TestKeyOfADeadProcess: of a call whose process died before it answered, the rows tell
// whether its command was started.
func TestKeyOfADeadProcess(t *testing.T) {
	w := newWorld(t)
	// Its state is that of another process: the reservation and the job stay as they were.
	c, _, _, keyed := w.another()
	must(t, c.Process.Kill())
	_ = c.Wait()
	for _, o := range w.ops {
		if o.Name != "exec_command" {
			continue
		}
		for key, want := range map[string]string{"12345678": keyed, "87654321": ""} {
			b, err := o.Bind(json.RawMessage(`{"program":"sh","args":["-c","echo $$ > pid2; exec sleep 600"],"idempotencyKey":"` + key + `"}`))
			must(t, err)
			out, err := b.Outcome(context.Background(), contract.Call{Principal: client})
			must(t, err)
			got := ""
			if out.Done != nil {
				got = decode(t, *out.Done).str("jobId")
			}
			if !out.Known || got != want {
				t.Errorf("%s: %+v, want job %q", key, out, want)
			}
		}
	}
	w.killLeft()
}

// TestKeyIsUsedAnew: the job of an earlier use of a key, whose answer is not kept any more, is
// no answer to a later call that died before it started anything.
func TestKeyIsUsedAnew(t *testing.T) {
	w := newWorld(t)
	d := newDoor(w)
	args := obj{"command": "echo x >> runs", "idempotencyKey": "12345678"}
	if r := d.run("run_command", args); !r.OK || w.runs() != 1 {
		t.Fatalf("%+v", r.Error)
	}
	retention := time.Duration(w.lim.IdempotencyRetentionMs) * time.Millisecond
	w.clock.Add(int64(retention + time.Minute))
	ctx := context.Background()
	digest, err := contract.Digest(args)
	must(t, err)
	reserved, _, err := w.state.Reserve(ctx, state.Key{Key: "12345678", Principal: client.GrantID, Workspace: "ws_1", Tool: "run_command"}, digest, retention)
	must(t, err)
	must(t, reserved.Keep(ctx))
	if r := d.run("run_command", args); !r.OK || w.runs() != 2 || decode(t, *r.Data)["replayed"] != false {
		t.Errorf("%+v, run %d times", r, w.runs())
	}
}

// TestApprovalShowsTheCommand: before the owner has answered nothing runs, and what is asked
// is what will run.
func TestApprovalShowsTheCommand(t *testing.T) {
	w := newWorld(t)
	d := newDoor(w)
	d.trust = contract.TrustEdit
	args := obj{"command": "echo x >> runs \u202e", "cwd": "."}
	r := d.run("run_command", args)
	if r.OK || r.Error.Code != contract.ApprovalRequired || w.runs() != 0 {
		t.Fatalf("%+v", r)
	}
	if strings.Contains(r.Error.Detail["summary"].(string), "echo") {
		t.Error("the caller's text is in the summary")
	}
	ctx := context.Background()
	list, err := w.state.PendingApprovals(ctx)
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	asked, err := w.state.Asked(ctx, list[0].ID)
	must(t, err)
	if !strings.Contains(string(asked.Detail), `echo x >> runs \\u{202e}`) {
		t.Errorf("%s", asked.Detail)
	}
	_, err = w.state.Decide(ctx, "ws_1", list[0].ID, true)
	must(t, err)
	if r := d.run("run_command", args); !r.OK || w.runs() != 1 {
		t.Errorf("%+v", r.Error)
	}
	if r := d.run("run_command", args); r.OK || w.runs() != 1 {
		t.Error("an answer was used twice")
	}
}

// approve answers the one question that is open, and gives what the owner was shown.
func (d *door) approve() (shown data) {
	d.t.Helper()
	ctx := context.Background()
	list, err := d.state.PendingApprovals(ctx)
	must(d.t, err)
	if len(list) != 1 {
		d.t.Fatalf("%+v", list)
	}
	asked, err := d.state.Asked(ctx, list[0].ID)
	must(d.t, err)
	must(d.t, json.Unmarshal(asked.Detail, &shown))
	_, err = d.state.Decide(ctx, "ws_1", list[0].ID, true)
	must(d.t, err)
	return shown
}

// TestApprovalHoldsTheProgram: what the owner allowed is the program as it was then, not
// whatever has its name when it is started.
func TestApprovalHoldsTheProgram(t *testing.T) {
	w := newWorld(t)
	w.offers = []job.Offer{{ID: "demo", Program: "./tool.sh"}}
	w.reopen()
	d := newDoor(w)
	d.trust = contract.TrustEdit
	const harmless, other = "#!/bin/sh\necho harmless\n", "#!/bin/sh\necho x >> runs\n"
	w.write(".dodo.json", `{}`, 0o644)
	w.write("tool.sh", harmless, 0o755)
	task := w.tasks()["dodo:demo"]
	for name, args := range map[string]obj{
		"exec_command": {"program": "./tool.sh", "idempotencyKey": "12345678"},
		"run_task":     {"taskId": task.ID, "recipeDigest": task.RecipeDigest, "idempotencyKey": "12345678"},
	} {
		w.write("tool.sh", harmless, 0o755)
		d.run(name, args)
		shown := d.approve()
		if shown.str("programHash") != contract.Hash([]byte(harmless)) {
			t.Errorf("%s: %v", name, shown)
		}
		if name == "run_task" && (shown.str("taskId") != task.ID || shown.str("source") != ".dodo.json" || shown.str("recipeDigest") != task.RecipeDigest) {
			t.Errorf("%v", shown)
		}
		prepared := w.prepare(name, args)
		w.write("tool.sh", other, 0o755)
		if r := d.run(name, args); r.OK || r.Error.Code != contract.ApprovalRequired {
			t.Errorf("%s: the approval of another program was used: %+v", name, r)
		}
		d.approve()
		_, err := prepared.Run(context.Background())
		refused(t, err, contract.FileChanged)
		w.write("tool.sh", harmless, 0o755)
		r := d.run(name, args)
		if !r.OK {
			t.Fatalf("%s: %+v", name, r.Error)
		}
		if o := w.ended(decode(t, *r.Data).str("jobId")); o.str("stdout") != "harmless\n" || w.runs() != 0 {
			t.Errorf("%s: %v, run %d times", name, o, w.runs())
		}
	}
}

// prepare is a call up to where its turn would come.
func (w *world) prepare(name string, args any) contract.Prepared {
	w.t.Helper()
	b := w.bind(name, args)
	p, err := b.Prepare(context.Background(), contract.Call{Principal: client})
	must(w.t, err)
	return p
}

func (w *world) bind(name string, args any) (b contract.Bound) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	must(w.t, err)
	for _, o := range w.ops {
		if o.Name == name {
			b, err = o.Bind(raw)
			must(w.t, err)
		}
	}
	return b
}
