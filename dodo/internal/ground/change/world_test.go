package change_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/change"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/internal/fault"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		f := fault.From(err)
		t.Fatalf("%v (%s, %v, %v)", err, f.Code, f.Detail, f.Err)
	}
}

// refused holds an error against the code it must have.
func refused(t testing.TB, err error, code fault.Code) *fault.Error {
	t.Helper()
	if !errors.Is(err, code) {
		f := fault.From(err)
		if f == nil {
			f = &fault.Error{}
		}
		t.Fatalf("got %v (%s, %v, %v), want %s", err, f.Code, f.Detail, f.Err, code)
	}
	return fault.From(err)
}

// realTemp is a private directory whose path has no link in it.
func realTemp(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o700))
	return dir
}

// A world is a workspace with its installation.
type world struct {
	t     testing.TB
	dir   string // of the installation
	root  string
	clock atomic.Int64 // what is added to the time
	svc   *change.Service
	state *state.Store
	find  change.Finder
	asks  bool
	lim   contract.Limits
	epoch int
	ops   []contract.Op // made once: building schemas takes longer than a call
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldAt(t, realTemp(t), realTemp(t))
}

func worldAt(t testing.TB, dir, root string) *world {
	t.Helper()
	w := &world{t: t, dir: dir, root: root, lim: contract.DefaultLimits()}
	w.open()
	t.Cleanup(w.close)
	return w
}

func (w *world) open() {
	w.t.Helper()
	ctx := context.Background()
	now := func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }
	st, err := state.Open(ctx, w.dir, state.Options{Now: now})
	must(w.t, err)
	tree, err := workspace.Open(w.root, workspace.Options{Hidden: []string{w.dir}, MaxFile: int64(w.lim.ReadFileBytes), AllowUnsafe: true})
	must(w.t, err)
	w.epoch++
	svc, err := change.New(change.Config{
		Tree: tree, State: st, WorkspaceID: st.WorkspaceID(w.root), Epoch: fmt.Sprintf("boot_%d", w.epoch), Limits: w.lim, Find: w.find, Now: now,
		Asks: func(context.Context, contract.Principal) (bool, error) { return w.asks, nil },
	})
	must(w.t, err)
	w.svc, w.state, w.ops = svc, st, svc.Ops()
}

func (w *world) close() {
	if w.svc == nil {
		return
	}
	must(w.t, w.svc.Close())
	must(w.t, w.svc.Tree.Close())
	must(w.t, w.state.Close())
	w.svc = nil
}

// reopen is a new process.
func (w *world) reopen() {
	w.t.Helper()
	w.close()
	w.open()
}

func (w *world) path(rel string) string { return filepath.Join(w.root, rel) }

func (w *world) write(rel, text string) string {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.path(rel)), 0o755))
	must(w.t, os.WriteFile(w.path(rel), []byte(text), 0o644))
	return contract.Hash([]byte(text))
}

func (w *world) holds(rel, want string) {
	w.t.Helper()
	if got, err := os.ReadFile(w.path(rel)); err != nil || string(got) != want {
		w.t.Errorf("%s holds %.80q (%v), want %.80q", rel, got, err, want)
	}
}

func (w *world) absent(rel string) {
	w.t.Helper()
	if _, err := os.Lstat(w.path(rel)); !errors.Is(err, fs.ErrNotExist) {
		w.t.Errorf("%s is there (%v)", rel, err)
	}
}

func (w *world) mode(rel string, want fs.FileMode) {
	w.t.Helper()
	in, err := os.Lstat(w.path(rel))
	must(w.t, err)
	if in.Mode().Perm() != want {
		w.t.Errorf("%s has mode %v, want %v", rel, in.Mode().Perm(), want)
	}
}

// tree lists the files with their contents, stages too.
func (w *world) tree() map[string]string {
	w.t.Helper()
	list := map[string]string{}
	must(w.t, filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == w.root {
			return err
		}
		rel, _ := filepath.Rel(w.root, path)
		if d.IsDir() {
			list[rel+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		list[rel] = string(data)
		return err
	}))
	return list
}

// clean holds that no stage is left.
func (w *world) clean() {
	w.t.Helper()
	for name := range w.tree() {
		if strings.HasPrefix(filepath.Base(name), ".dodo-") {
			w.t.Errorf("%s was left", name)
		}
	}
}

var (
	owner   = contract.LocalOwner()
	client  = contract.Principal{GrantID: "grant_1", ClientID: "c1", Scopes: contract.NewScopes(contract.AllScopes...)}
	another = contract.Principal{GrantID: "grant_2", ClientID: "c2", Scopes: contract.NewScopes(contract.AllScopes...)}
)

type data map[string]any

// prepare binds and prepares a call.
func (w *world) prepare(who contract.Principal, name string, args any) (contract.Prepared, error) {
	w.t.Helper()
	raw, err := json.Marshal(args)
	must(w.t, err)
	for _, o := range w.ops {
		if o.Name != name {
			continue
		}
		b, err := o.Bind(raw)
		if err != nil {
			return contract.Prepared{}, err
		}
		return b.Prepare(context.Background(), contract.Call{Principal: who})
	}
	w.t.Fatalf("no operation %s", name)
	return contract.Prepared{}, nil
}

// call does what the gate does with a call that is allowed.
func (w *world) callAs(who contract.Principal, name string, args any) (data, contract.Result, error) {
	w.t.Helper()
	p, err := w.prepare(who, name, args)
	if err != nil {
		return nil, contract.Result{}, err
	}
	r := contract.Result{}
	if p.Done != nil {
		r = *p.Done
	} else if r, err = p.Run(context.Background()); err != nil {
		return nil, r, err
	}
	raw, err := json.Marshal(r.Data)
	must(w.t, err)
	var d data
	must(w.t, json.NewDecoder(bytes.NewReader(raw)).Decode(&d))
	return d, r, nil
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

func (d data) str(key string) string {
	s, _ := d[key].(string)
	return s
}

// obj is a literal of arguments.
type obj = map[string]any
