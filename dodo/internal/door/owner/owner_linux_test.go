package owner_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/owner"
	"localmcp/internal/fault"
	"localmcp/internal/testenv"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func place(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dodo-owner-") // a short path, as installations have
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func statusOf(epoch string) owner.Status {
	return owner.Status{PID: os.Getpid(), Version: "1", Transport: "stdio", Root: "/w", WorkspaceID: "ws_0123456789abcdef0123", Epoch: epoch}
}

// serve is a server in this process.
func serve(t testing.TB, dir string, commands map[string]owner.Command) *owner.Server {
	t.Helper()
	s, err := owner.Listen(t.Context(), owner.Options{
		Dir: dir, Workspace: "ws_0123456789abcdef0123", Commands: commands, Stop: func() {},
		Status: func() owner.Status { return statusOf("boot_1") },
	})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// the is the one server of an installation.
func the(t testing.TB, dir string) owner.Live {
	t.Helper()
	live, silent, err := owner.Discover(t.Context(), dir)
	must(t, err)
	if len(live) != 1 || len(silent) != 0 {
		t.Fatalf("live %+v, silent %+v", live, silent)
	}
	return live[0]
}

func TestCall(t *testing.T) {
	dir := place(t)
	var calls atomic.Int32
	serve(t, dir, map[string]owner.Command{
		"echo": func(_ context.Context, args json.RawMessage) (any, error) { calls.Add(1); return args, nil },
		"fail": func(context.Context, json.RawMessage) (any, error) {
			return nil, fault.Wrap(contract.Conflict, errors.New("the cause"), "it is taken").WithHint("take another").With("n", 1).Retry()
		},
		"bug":   func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("secret") },
		"panic": func(context.Context, json.RawMessage) (any, error) { panic("secret") },
		"large": func(context.Context, json.RawMessage) (any, error) { return strings.Repeat("x", 1<<20), nil },
	})
	l := the(t, dir)
	if d := cmp.Diff(statusOf("boot_1"), l.Status); d != "" {
		t.Error(d)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			var out struct{ A string }
			if err := l.Call(t.Context(), "echo", map[string]string{"A": fmt.Sprint(i)}, &out); err != nil || out.A != fmt.Sprint(i) {
				t.Errorf("%d: %q, %v", i, out.A, err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 40 {
		t.Errorf("%d calls", calls.Load())
	}
	got := fault.From(l.Call(t.Context(), "fail", nil, nil))
	want := &fault.Error{Code: contract.Conflict, Msg: "it is taken", Hint: "take another", Retryable: true, Detail: map[string]any{"n": 1.0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for cmd, code := range map[string]fault.Code{
		"none": contract.NotSupported, "bug": contract.InternalError, "panic": contract.InternalError, "large": contract.ResourceLimit,
	} {
		err := l.Call(t.Context(), cmd, nil, nil)
		if !errors.Is(err, code) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", cmd, err)
		}
	}
	if err := l.Call(t.Context(), "echo", strings.Repeat("x", 1<<20), nil); !errors.Is(err, contract.ResourceLimit) {
		t.Errorf("a question longer than a frame: %v", err)
	}
	if err := l.Call(t.Context(), strings.Repeat("c", 101), nil, nil); err == nil {
		t.Error("a name of 101 bytes was taken")
	}
}

func TestStopNamesTheServer(t *testing.T) {
	dir := place(t)
	stopped := make(chan bool, 1)
	var s *owner.Server
	s, err := owner.Listen(t.Context(), owner.Options{
		Dir: dir, Status: func() owner.Status { return statusOf("boot_1") },
		Stop: func() { stopped <- true },
	})
	must(t, err)
	l := the(t, dir)
	stale := l
	stale.Epoch = "boot_0"
	if err := stale.Stop(t.Context()); !errors.Is(err, contract.StaleWorkspace) {
		t.Error(err)
	}
	if len(stopped) != 0 {
		t.Fatal("a server was stopped that was not meant")
	}
	ended := make(chan error, 1)
	go func() { <-stopped; ended <- s.Close() }()
	must(t, l.Stop(t.Context()))
	must(t, <-ended)
	if left, err := os.ReadDir(filepath.Join(dir, "ipc")); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if live, silent, err := owner.Discover(t.Context(), dir); len(live)+len(silent) != 0 || err != nil {
		t.Errorf("%v %v %v", live, silent, err)
	}
	if err := l.Call(t.Context(), "status", nil, nil); !errors.Is(err, contract.NotFound) {
		t.Error(err)
	}
}

func TestDiscoverMakesNothing(t *testing.T) {
	dir := filepath.Join(place(t), "none")
	if live, silent, err := owner.Discover(t.Context(), dir); len(live)+len(silent) != 0 || err != nil {
		t.Errorf("%v %v %v", live, silent, err)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestLeftDescriptors: a descriptor whose socket never came goes at the next start, and one
// whose socket may still come stays.
func TestLeftDescriptors(t *testing.T) {
	dir := place(t)
	ipc := filepath.Join(dir, "ipc")
	must(t, os.Mkdir(ipc, 0o700))
	left, fresh := filepath.Join(ipc, "p-1111111111111111.sock.auth"), filepath.Join(ipc, "p-2222222222222222.sock.auth")
	for _, path := range []string{left, fresh} {
		must(t, os.WriteFile(path, []byte("{}"), 0o600))
	}
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(left, hour, hour))
	serve(t, dir, nil)
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
	if _, err := os.Lstat(fresh); err != nil {
		t.Error(err)
	}
	the(t, dir)
}

// Where the paths of sockets would be too long, both ends find the same other place.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(place(t), strings.Repeat("long/", 20))
	must(t, os.MkdirAll(dir, 0o700))
	sum := sha256.Sum256([]byte(filepath.Clean(dir)))
	elsewhere := fmt.Sprintf("/tmp/dodo-%d-%x", os.Geteuid(), sum[:8])
	dir = filepath.Clean(dir)
	one, two := serve(t, dir, nil), serve(t, dir, nil)
	if st, err := os.Lstat(elsewhere); err != nil || st.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v %v", st, err)
	}
	must(t, one.Close())
	the(t, dir)
	must(t, two.Close())
	for _, place := range []string{elsewhere, filepath.Join(dir, "ipc")} {
		if _, err := os.Lstat(place); !os.IsNotExist(err) {
			t.Errorf("%s: %v", place, err)
		}
	}
	var wg sync.WaitGroup // it comes and goes under many at once
	for range 8 {
		wg.Go(func() {
			for range 10 {
				s, err := owner.Listen(t.Context(), owner.Options{Dir: dir, Status: func() owner.Status { return statusOf("boot_1") }, Stop: func() {}})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestManyConnectionsAndSlowOnes(t *testing.T) {
	t.Parallel()
	dir := place(t)
	serve(t, dir, nil)
	l := the(t, dir)
	var idle []io.ReadWriteCloser
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	begun := time.Now()
	for range 64 {
		idle = append(idle, dial(t, dir))
	}
	deadline := time.Now().Add(5 * time.Second)
	for { // until all are let in, the next is one of them
		if err := l.Call(t.Context(), "status", nil, nil); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a connection more than 64 was served")
		}
	}
	if _, err := idle[0].Read(make([]byte, 1)); err == nil {
		t.Error("it spoke first")
	}
	if d := time.Since(begun); d < 9*time.Second || d > 20*time.Second {
		t.Errorf("a silent connection ended after %v", d)
	}
	for end := time.Now().Add(5 * time.Second); ; {
		if err := l.Call(t.Context(), "status", nil, nil); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the places were not given back")
		}
	}
}

// workerVariable makes the test binary another process: WHAT|DIR.
const workerVariable = "OWNER_TEST_WORKER"

func TestMain(m *testing.M) {
	job := os.Getenv(workerVariable)
	if job == "" {
		os.Exit(m.Run())
	}
	what, dir, _ := strings.Cut(job, "|")
	if err := work(what, dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func work(what, dir string) error {
	ctx := context.Background()
	switch what {
	case "serve": // until the input ends; a line starts the job that it names
		s, err := owner.Listen(ctx, owner.Options{
			Dir: dir, Workspace: "ws_0123456789abcdef0123", Stop: func() {}, Status: func() owner.Status { return statusOf("boot_1") },
			Commands: map[string]owner.Command{"who": func(context.Context, json.RawMessage) (any, error) { return os.Getpid(), nil }},
		})
		if err != nil {
			return err
		}
		fmt.Println("serving")
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			out, _ := child(in.Text(), dir).CombinedOutput()
			fmt.Println(strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", "; "))
		}
		return s.Close()
	case "ask": // every server
		live, silent, err := owner.Discover(ctx, dir)
		if err != nil {
			return err
		}
		for _, s := range silent {
			if !strings.Contains(s.Err.Error(), "without an answer") {
				return s.Err
			}
		}
		for _, l := range live {
			if err := l.Call(ctx, "who", nil, nil); err != nil {
				return err
			}
		}
		fmt.Println("asked", len(live), "refused", len(silent))
	case "grandchild":
		out, err := child("ask", dir).CombinedOutput()
		fmt.Print(string(out))
		return err
	}
	return nil
}

func child(what, dir string) *exec.Cmd {
	self, _ := os.Executable()
	c := exec.Command(self)
	c.Env = append(os.Environ(), workerVariable+"="+what+"|"+dir)
	return c
}

type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t testing.TB, dir string) *worker {
	t.Helper()
	w := &worker{cmd: child("serve", dir)}
	var err error
	w.in, err = w.cmd.StdinPipe()
	must(t, err)
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	w.out = bufio.NewScanner(out)
	must(t, w.cmd.Start())
	t.Cleanup(func() { w.cmd.Process.Kill(); w.cmd.Wait() })
	if got := w.line(); got != "serving" {
		t.Fatal(got)
	}
	return w
}

func (w *worker) line() string {
	if !w.out.Scan() {
		return "it ended"
	}
	return w.out.Text()
}

// What a caller may start through a server must not give itself permission.
func TestJobsAreRefused(t *testing.T) {
	dir := place(t)
	one := start(t, dir)
	start(t, dir)
	if out, err := child("ask", dir).CombinedOutput(); err != nil || string(out) != "asked 2 refused 0\n" {
		t.Fatalf("the owner: %s %v", out, err)
	}
	for _, job := range []string{"ask", "grandchild"} {
		fmt.Fprintln(one.in, job) // by three sockets, also those of the server that did not start it
		if got := one.line(); got != "asked 0 refused 3" {
			t.Errorf("%s: %s", job, got)
		}
	}
}

func TestServersOfOneWorkspace(t *testing.T) {
	dir := place(t)
	first, second := start(t, dir), start(t, dir)
	pids := func() (list []int) {
		live, silent, err := owner.Discover(t.Context(), dir)
		must(t, err)
		for _, s := range silent {
			t.Errorf("silent: %+v", s)
		}
		for _, l := range live {
			list = append(list, l.PID)
		}
		return list
	}
	a, b := first.cmd.Process.Pid, second.cmd.Process.Pid
	if d := cmp.Diff([]int{min(a, b), max(a, b)}, pids()); d != "" {
		t.Fatal(d)
	}
	first.in.Close() // a good end leaves the workspace's socket, which is the second's now
	must(t, first.cmd.Wait())
	if d := cmp.Diff([]int{b}, pids()); d != "" {
		t.Error(d)
	}
	if names := sockets(t, dir); len(names) != 2 {
		t.Errorf("%v", names)
	}
	must(t, second.cmd.Process.Kill())
	second.cmd.Wait()
	if got := pids(); len(got) != 0 {
		t.Error(got)
	}
	third := start(t, dir)
	if d := cmp.Diff([]int{third.cmd.Process.Pid}, pids()); d != "" {
		t.Error(d)
	}
	if names := sockets(t, dir); len(names) != 2 {
		t.Errorf("a killed server's sockets stay: %v", names)
	}
}

// A server that stands still does not hinder the others.
func TestSilentServer(t *testing.T) {
	dir := place(t)
	stuck, well := start(t, dir), start(t, dir)
	testenv.Halt(t, stuck.cmd.Process)
	begun := time.Now()
	live, silent, err := owner.Discover(t.Context(), dir)
	must(t, err)
	if len(live) != 1 || live[0].PID != well.cmd.Process.Pid || len(silent) != 1 || !errors.Is(silent[0].Err, contract.Timeout) {
		t.Errorf("%+v %+v", live, silent)
	}
	if d := time.Since(begun); d > 4*time.Second {
		t.Errorf("it took %v", d)
	}
}

func sockets(t testing.TB, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(dir, "ipc"))
	must(t, err)
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".sock") {
			names = append(names, e.Name())
		}
	}
	return names
}
