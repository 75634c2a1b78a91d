package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/dodo/internal/ground/state"
	"localmcp/dodo/internal/ground/workspace"
	"localmcp/dodo/internal/host"
	"localmcp/internal/fault"
)

// world is a host over a real state; its workspaces have no operations.
type world struct {
	*host.Host
	store  *state.Store
	dir    string
	opened atomic.Int32
	closed atomic.Int32
	slow   chan struct{}
	fail   atomic.Bool

	elsewhere, explode atomic.Bool // how opening goes wrong

	mu   sync.Mutex
	deny map[string]bool // workspaces without access
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: dir, deny: map[string]bool{}}
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if w.store, err = state.Open(context.Background(), filepath.Join(dir, "state"), state.Options{}); err != nil {
		t.Fatal(err)
	}
	active := &host.Runtime{ID: "ws_active", Epoch: "boot_a", Close: func() error { w.closed.Add(1); return nil }}
	w.Host = host.New(active, host.Config{Authority: w, Store: w.store, Open: w.open})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := w.End(ctx); err != nil {
			t.Error(err)
		}
		if w.opened.Load()+1 != w.closed.Load() {
			t.Errorf("%d opened, %d closed", w.opened.Load()+1, w.closed.Load())
		}
		_ = w.store.Close()
	})
	return w
}

func (w *world) open(_ context.Context, p state.Project) (*host.Runtime, error) {
	if w.slow != nil {
		<-w.slow
		<-w.slow
	}
	if w.fail.Load() {
		return nil, fault.New(contract.PathDenied, "no")
	}
	if w.explode.Load() {
		panic("boom")
	}
	w.opened.Add(1)
	if w.elsewhere.Load() {
		if err := errors.Join(os.Rename(p.Root, p.Root+"-away"), os.Mkdir(p.Root, 0o755)); err != nil {
			return nil, err
		}
	}
	tree, err := workspace.Open(p.Root, workspace.Options{})
	if err != nil {
		return nil, err
	}
	return &host.Runtime{ID: p.Workspace, Epoch: contract.NewID("boot", 0), Project: p.ID, Tree: tree, Close: func() error {
		w.closed.Add(1)
		return tree.Close()
	}}, nil
}

func (w *world) Principal(context.Context, string) (contract.Principal, error) {
	return contract.LocalOwner(), nil
}

func (w *world) Standing(_ context.Context, _ contract.Principal, workspace string) (gate.Standing, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deny[workspace] {
		return gate.Standing{}, nil
	}
	return gate.Standing{Scopes: contract.NewScopes(contract.ScopeRead)}, nil
}

func (w *world) project(t *testing.T, name string) state.Project {
	t.Helper()
	root := filepath.Join(w.dir, name)
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := state.Locate(root)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.store.AddProject(context.Background(), root, name, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) lease(t *testing.T, p contract.Principal, project string, want fault.Code) (gate.Workspace, func()) {
	t.Helper()
	ws, release, err := w.Lease(context.Background(), p, project)
	if want != "" {
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %s", err, want)
		}
		return ws, func() {}
	}
	if err != nil {
		t.Fatal(err)
	}
	return ws, release
}

var stranger = contract.Principal{GrantID: "g", ClientID: "c", Scopes: contract.NewScopes(contract.ScopeRead)}

// TestOneRuntimeAProject shows that calls of a project share one workspace, whose epoch
// stays, and that the active one is given without a project.
func TestOneRuntimeAProject(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.slow = make(chan struct{})
	epochs := make(chan string, 8)
	for range 8 {
		go func() {
			ws, release, err := w.Lease(context.Background(), stranger, p.ID)
			if err != nil {
				t.Error(err)
				epochs <- ""
				return
			}
			release()
			release() // twice is once
			epochs <- ws.Epoch
		}()
	}
	close(w.slow)
	first := <-epochs
	for range 7 {
		if e := <-epochs; e != first || e == "" {
			t.Errorf("epochs %q and %q", first, e)
		}
	}
	if w.opened.Load() != 1 {
		t.Errorf("opened %d times", w.opened.Load())
	}
	ws, release := w.lease(t, stranger, "", "")
	defer release()
	if ws.ID != "ws_active" {
		t.Errorf("%+v", ws)
	}
}

// TestWhoMayGoWhere shows the refusals before a project is opened.
func TestWhoMayGoWhere(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.lease(t, contract.LocalOwner(), "prj_00000000", contract.NotFound)
	w.lease(t, stranger, "prj_00000000", contract.Forbidden)
	w.deny[p.Workspace] = true
	w.lease(t, stranger, p.ID, contract.WorkspaceAccessRequired)
	w.deny[p.Workspace] = false
	if err := os.Rename(p.Root, p.Root+"-away"); err != nil {
		t.Fatal(err)
	}
	w.lease(t, stranger, p.ID, contract.PathDenied)
	if err := os.Mkdir(p.Root, 0o755); err != nil { // another directory of that name
		t.Fatal(err)
	}
	w.lease(t, stranger, p.ID, contract.PathDenied)
	if w.opened.Load() != 0 {
		t.Error("something was opened")
	}
}

// TestFailedOpeningIsTriedAgain: a project that could not be opened is not remembered so.
func TestFailedOpeningIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.fail.Store(true)
	w.lease(t, stranger, p.ID, contract.PathDenied)
	w.fail.Store(false)
	_, release := w.lease(t, stranger, p.ID, "")
	release()
}

// TestMost shows that the least lately used project makes room, and that none in use does.
func TestMost(t *testing.T) {
	w := newWorld(t)
	var projects []state.Project
	for i := range host.Most + 2 {
		projects = append(projects, w.project(t, fmt.Sprint("p", i)))
	}
	var releases []func()
	for _, p := range projects[:host.Most] {
		_, release := w.lease(t, stranger, p.ID, "")
		releases = append(releases, release)
	}
	w.lease(t, stranger, projects[host.Most].ID, contract.ResourceLimit)
	releases[3]()
	releases[1]()
	_, again := w.lease(t, stranger, projects[host.Most].ID, "")
	if w.closed.Load() != 1 {
		t.Fatalf("%d closed", w.closed.Load())
	}
	_, kept := w.lease(t, stranger, projects[1].ID, "") // still open: the fourth was used before it
	kept()
	if w.opened.Load() != host.Most+1 {
		t.Errorf("opened %d", w.opened.Load())
	}
	again()
	for i, r := range releases {
		if i != 1 && i != 3 {
			r()
		}
	}
}

// TestEnd shows that End waits for calls, refuses new ones, and does not wait for ever.
func TestEnd(t *testing.T) {
	w := newWorld(t)
	_, release := w.lease(t, stranger, "", "")
	ended := make(chan struct{})
	go func() {
		_ = w.End(context.Background())
		close(ended)
	}()
	for {
		_, r, err := w.Lease(context.Background(), stranger, "")
		if errors.Is(err, contract.Conflict) {
			break
		}
		r()
	}
	select {
	case <-ended:
		t.Fatal("ended while a call ran")
	case <-time.After(20 * time.Millisecond):
	}
	release()
	<-ended
}

// TestNoActiveWorkspace: before the owner chose one, calls without a project are refused and
// registered projects are served.
func TestNoActiveWorkspace(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	h := host.New(nil, w.Config)
	if h.Active() != nil {
		t.Error("there is one")
	}
	if _, _, err := h.Lease(context.Background(), stranger, ""); !errors.Is(err, contract.WorkspaceAccessRequired) {
		t.Errorf("%v", err)
	}
	ws, release, err := h.Lease(context.Background(), stranger, p.ID)
	if err != nil || ws.ID != p.Workspace {
		t.Fatalf("%+v %v", ws, err)
	}
	release()
	if err := errors.Join(h.Stop(context.Background()), h.End(context.Background())); err != nil {
		t.Error(err)
	}
	if _, _, err := h.Lease(context.Background(), stranger, ""); !errors.Is(err, contract.Conflict) {
		t.Errorf("%v", err)
	}
}

// TestMovedProject shows that a project that was registered at a new place is opened there:
// what was granted for the old place does not travel with the open runtime.
func TestMovedProject(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	old, release := w.lease(t, stranger, p.ID, "")
	if old.ID != p.Workspace {
		t.Fatalf("%+v", old)
	}
	to := p.Root + "-moved"
	if err := os.Rename(p.Root, to); err != nil {
		t.Fatal(err)
	}
	moved, err := w.store.AddProject(context.Background(), to, "", p.Directory)
	if err != nil || moved.ID != p.ID || moved.Workspace == p.Workspace {
		t.Fatalf("%+v, %v", moved, err)
	}
	ws, again := w.lease(t, stranger, p.ID, "") // while the old one is in use
	if ws.ID != moved.Workspace {
		t.Errorf("the call is in %s, the project at %s", ws.ID, moved.Workspace)
	}
	if w.closed.Load() != 0 {
		t.Error("closed while a call is in it")
	}
	release()
	again()
	same, third := w.lease(t, stranger, p.ID, "")
	third()
	if same.Epoch != ws.Epoch {
		t.Error("opened a third time")
	}
}

// TestOpenedElsewhere: what was opened must be what was admitted.
func TestOpenedElsewhere(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.elsewhere.Store(true)
	w.lease(t, stranger, p.ID, contract.PathDenied)
	if w.closed.Load() != 1 {
		t.Error("it stays open")
	}
}

// TestOpenedWhileStopping: a project whose opening ends after Stop has looked is closed again,
// and with it what could be started in it.
func TestOpenedWhileStopping(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.slow = make(chan struct{})
	got := make(chan error)
	go func() {
		_, release, err := w.Lease(context.Background(), stranger, p.ID)
		if err == nil {
			release()
		}
		got <- err
	}()
	w.slow <- struct{}{} // it is being opened
	if err := w.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	close(w.slow)
	if err := <-got; !errors.Is(err, contract.Conflict) {
		t.Errorf("%v", err)
	}
	if w.opened.Load() != 1 || w.closed.Load() != 1 {
		t.Errorf("%d opened, %d closed", w.opened.Load(), w.closed.Load())
	}
}

// TestCancelledWaiter: who no longer waits for an opening leaves without looking at what is
// just being written (the race detector tells).
func TestCancelledWaiter(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.slow = make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, release, err := w.Lease(ctx, stranger, p.ID)
			if err == nil {
				release()
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // all wait: one for its opening, the others for that
	cancel()
	time.Sleep(50 * time.Millisecond) // and leave; a channel that told so would order what must be ordered without it
	close(w.slow)
	all.Wait()
}

// TestPanicWhileOpening: the others that wait are not left waiting.
func TestPanicWhileOpening(t *testing.T) {
	w := newWorld(t)
	p := w.project(t, "one")
	w.explode.Store(true)
	w.slow = make(chan struct{})
	failed := make(chan error)
	for range 2 {
		go func() {
			defer func() {
				if recover() != nil {
					failed <- errors.New("panic")
				}
			}()
			_, _, err := w.Lease(context.Background(), stranger, p.ID)
			failed <- err
		}()
	}
	close(w.slow)
	for range 2 {
		select {
		case err := <-failed:
			if err == nil {
				t.Error("leased")
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a call waits for ever")
		}
	}
	w.explode.Store(false)
	_, release := w.lease(t, stranger, p.ID, "")
	release()
}

// TestEndDoesNotCloseUnderACall: a call that outlasts the end goes on in an open workspace.
func TestEndDoesNotCloseUnderACall(t *testing.T) {
	closed := false
	h := host.New(&host.Runtime{ID: "ws_active", Close: func() error { closed = true; return nil }}, host.Config{})
	if _, _, err := h.Lease(context.Background(), stranger, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.End(ctx); err != nil || closed {
		t.Errorf("closed %v, %v", closed, err)
	}
}
