package job_test

import (
	"bytes"
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
	"localmcp/dodo/internal/ground/job"
	"localmcp/dodo/internal/ground/sandbox"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/testenv"
)

// helper builds the walls: this test binary may be one with cgo, which cannot.
var (
	helper     = testenv.Program{Package: "localmcp/dodo/internal/ground/sandbox/testdata/helper"}
	helperPath = helper.Path
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		f := fault.From(err)
		t.Fatalf("%v (%s, %v, %v)", err, f.Code, f.Detail, f.Err)
	}
}

// refused holds an error against the code it must have, and that it says what to do.
func refused(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v (%+v), want %s", err, fault.From(err), code)
	}
	f := fault.From(err)
	if f.Hint == "" {
		t.Errorf("%v has no hint", err)
	}
	return f
}

// realTemp is a private directory whose path has no link in it.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o700))
	return dir
}

var (
	owner   = contract.LocalOwner()
	client  = contract.Principal{GrantID: "grant_1", ClientID: "c1", Scopes: contract.NewScopes(contract.AllScopes...)}
	another = contract.Principal{GrantID: "grant_2", ClientID: "c2", Scopes: contract.NewScopes(contract.AllScopes...)}
)

type (
	obj  = map[string]any
	data map[string]any
)

// A world is a workspace with its installation.
type world struct {
	t       testing.TB
	dir     string // of the installation
	root    string
	svc     *job.Service
	state   *state.Store
	place   *sandbox.Place
	epoch   int
	lim     contract.Limits
	mode    sandbox.Mode
	network sandbox.Network
	env     []string
	allow   []string
	offers  []job.Offer
	kept    func(context.Context) (sandbox.Kept, error)
	clock   atomic.Int64 // what is added to the time
	ops     []contract.Op
	reports atomic.Int64
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldAt(t, realTemp(t), realTemp(t))
}

func worldAt(t testing.TB, dir, root string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, root: root, lim: contract.DefaultLimits(), mode: sandbox.Require, network: sandbox.NoNetwork, env: []string{"HOME=" + root, "SECRET=s3cret"}}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	ctx := context.Background()
	now := func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }
	w.epoch++
	st, err := state.Open(ctx, w.dir, state.Options{Now: now})
	must(w.t, err)
	tree, err := workspace.Open(w.root, workspace.Options{})
	must(w.t, err)
	box := sandbox.New(sandbox.Options{Path: []string{"/usr/local/bin", "/usr/bin", "/bin"}, Hidden: []string{w.dir}, Helper: helperPath(w.t)})
	w.place = box.Place(w.root, filepath.Join(w.dir, "cache"), w.kept)
	svc, err := job.New(ctx, job.Config{
		Tree: tree, Place: w.place, State: st, WorkspaceID: st.WorkspaceID(w.root), Epoch: fmt.Sprintf("boot_%d", w.epoch), Limits: w.lim,
		Mode: func() sandbox.Mode { return w.mode }, Network: func() sandbox.Network { return w.network },
		Environ: w.env, EnvAllow: w.allow, Offers: w.offers, Now: now,
	})
	must(w.t, err)
	w.svc, w.state, w.ops = svc, st, svc.Ops()
}

func (w *world) close() {
	w.t.Helper()
	if w.svc == nil {
		return
	}
	must(w.t, w.svc.Close())
	must(w.t, w.svc.Tree.Close())
	must(w.t, w.state.Close())
	w.svc = nil
}

// reopen is a new process, with other limits if they were changed.
func (w *world) reopen() {
	w.t.Helper()
	w.close()
	w.open()
}

// write makes a file of the workspace.
func (w *world) write(rel, text string, mode os.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.root, rel)
	must(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(w.t, os.WriteFile(path, []byte(text), mode))
}

// do does what the gate does with a call that is allowed, and holds the answer against what
// the operation says it answers.
func (w *world) do(ctx context.Context, who contract.Principal, name string, args any) (contract.Result, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return contract.Result{}, err
	}
	for _, o := range w.ops {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(raw)
		if err != nil {
			return contract.Result{}, err
		}
		p, err := b.Prepare(ctx, contract.Call{Principal: who, Progress: func(float64, float64, string) { w.reports.Add(1) }})
		if err != nil {
			return contract.Result{}, err
		}
		var r contract.Result
		if p.Done != nil {
			r = *p.Done
		} else {
			if p.Summary == "" || strings.Contains(p.Summary, "\n") {
				return r, fmt.Errorf("summary %q", p.Summary)
			}
			if _, err := op.Encode(p.Preview); err != nil || p.Preview == nil {
				return r, fmt.Errorf("preview: %v", err)
			}
			if r, err = p.Run(ctx); err == nil && p.Follow != nil {
				r, err = p.Follow(ctx, r)
			}
		}
		if err != nil {
			return r, err
		}
		reply, err := op.Encode(contract.Success("ws", "boot", r))
		if err == nil {
			err = o.Fits(reply)
		}
		return r, err
	}
	return contract.Result{}, fmt.Errorf("no operation %s", name)
}

func (w *world) callAs(who contract.Principal, name string, args any) (data, contract.Result, error) {
	w.t.Helper()
	r, err := w.do(context.Background(), who, name, args)
	if err != nil {
		return nil, r, err
	}
	return decode(w.t, r.Data), r, nil
}

func decode(t testing.TB, v any) data {
	t.Helper()
	raw, err := op.Encode(v)
	must(t, err)
	var d data
	must(t, json.NewDecoder(bytes.NewReader(raw)).Decode(&d))
	return d
}

func (w *world) try(name string, args any) (data, error) {
	w.t.Helper()
	d, _, err := w.callAs(client, name, args)
	return d, err
}

func (w *world) call(name string, args any) data {
	w.t.Helper()
	d, err := w.try(name, args)
	must(w.t, err)
	return d
}

// sh runs a command to its end.
func (w *world) sh(command string) data {
	w.t.Helper()
	return w.call("run_command", obj{"command": command})
}

// background starts a command and gives the id of its job.
func (w *world) background(command string, more ...obj) string {
	w.t.Helper()
	args := obj{"command": command, "background": true}
	for _, m := range more {
		for k, v := range m {
			args[k] = v
		}
	}
	return w.call("run_command", args).str("jobId")
}

// ended waits for a job.
func (w *world) ended(id string) data {
	w.t.Helper()
	d := w.call("job_wait", obj{"jobId": id})
	if d["exited"] != true {
		w.t.Fatalf("job %s is still there: %v", id, d)
	}
	return d
}

// all reads a stream by pages.
func (w *world) all(id, stream string, max int) string {
	w.t.Helper()
	var text strings.Builder
	for offset := any(0); ; {
		d := w.call("job_output", obj{"jobId": id, "stream": stream, "offset": offset, "maxBytes": max})
		text.WriteString(d.str("content"))
		if d["endOfStream"] == true {
			return text.String()
		}
		if d["nextOffset"] == offset {
			w.t.Fatalf("reading stands still: %v", d)
		}
		offset = d["nextOffset"]
	}
}

// soon waits for something that happens by itself.
func (w *world) soon(what string, is func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("it did not come: %s", what)
		}
	}
}

// untilOn is a command that goes on until it is told to end by on.
const untilOn = "until test -e on; do sleep 0.05; done"

func (w *world) on() {
	w.t.Helper()
	w.write("on", "", 0o644)
}

func (d data) str(key string) string {
	s, _ := d[key].(string)
	return s
}

func (d data) num(key string) int {
	n, _ := d[key].(float64)
	return int(n)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := op.Encode(v)
	must(t, err)
	return raw
}
