package state_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// workerVariable makes the test binary a process of its own: its value is what it does, in
// which directory and how often.
const workerVariable = "STATE_TEST_WORKER"

func TestMain(m *testing.M) {
	if job := os.Getenv(workerVariable); job != "" {
		if err := work(strings.Split(job, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func work(job []string) error {
	ctx := context.Background()
	s, err := state.Open(ctx, job[1], state.Options{})
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(job[2])
	switch job[0] {
	case "audit": // rows, each named when it was added
		for i := range n {
			request := fmt.Sprintf("%d.%d", os.Getpid(), i)
			if err := s.Audit(ctx, state.Event{Request: request, Tool: "t", Result: state.ResultOK}); err != nil {
				return err
			}
			fmt.Println(request)
		}
	case "mixed": // what a busy server writes
		for i := range n {
			k := state.Key{Key: fmt.Sprintf("key-%d-%d", os.Getpid(), i), Principal: "g", Workspace: "ws_1", Tool: "t"}
			r, _, err := s.Reserve(ctx, k, "d", time.Hour)
			if err != nil {
				return err
			}
			if err := r.Complete(ctx, json.RawMessage(`{}`)); err != nil {
				return err
			}
			if err := s.Audit(ctx, state.Event{Request: k.Key, Tool: "t", Result: state.ResultOK}); err != nil {
				return err
			}
			fmt.Println(k.Key)
		}
	case "consume": // counts how often it may use the one approval
		used := 0
		for range n {
			_, ok, err := s.Consume(ctx, question, time.Hour)
			if err != nil {
				return err
			}
			if ok {
				used++
			}
		}
		fmt.Println(used)
	case "reserve": // and end without a word
		r, receipt, err := s.Reserve(ctx, state.Key{Key: "shared-key", Principal: "g", Workspace: "ws_1", Tool: "t"}, "d", time.Hour)
		switch {
		case errors.Is(err, contract.Conflict):
			fmt.Println("running")
		case err != nil:
			return err
		case receipt != nil:
			fmt.Println(string(receipt))
		case n > 0:
			return r.Complete(ctx, json.RawMessage(`{"by":1}`))
		default:
			fmt.Println("reserved")
			io.Copy(io.Discard, os.Stdin)
		}
		return nil
	}
	return s.Close()
}

var question = state.Question{Workspace: "ws_1", Epoch: "boot_1", Principal: "g", Tool: "t", Digest: "d"}

// A worker is such a process.
type worker struct {
	t    testing.TB
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs strings.Builder
}

func start(t testing.TB, what, dir string, n int) *worker {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	w := &worker{t: t, cmd: exec.Command(self)}
	w.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%d", workerVariable, what, dir, n))
	w.cmd.Stderr = &w.errs
	w.in, err = w.cmd.StdinPipe()
	must(t, err)
	out, err := w.cmd.StdoutPipe()
	must(t, err)
	w.out = bufio.NewScanner(out)
	must(t, w.cmd.Start())
	t.Cleanup(func() { w.cmd.Process.Kill(); w.cmd.Wait() })
	return w
}

// rest are the lines until the end of the process, which must be a good one.
func (w *worker) rest() (lines []string) {
	w.t.Helper()
	for w.out.Scan() {
		lines = append(lines, w.out.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("%v: %s", err, &w.errs)
	}
	return lines
}

func requests(t testing.TB, s *state.Store) (list []string) {
	t.Helper()
	events, err := s.Events(t.Context(), "", 1_000_000)
	must(t, err)
	for _, e := range events {
		list = append(list, e.Request)
	}
	slices.Reverse(list)
	return list
}

func holds(t testing.TB, s *state.Store) state.Inspection {
	t.Helper()
	v, err := s.Verify(t.Context())
	must(t, err)
	if v.Broken != nil {
		t.Fatalf("the chain is broken: %+v", *v.Broken)
	}
	return v
}

// Four processes open one new installation at once and write: nothing is lost, nothing
// fails, and the chain is one.
func TestFourProcesses(t *testing.T) {
	const each = 200
	dir := place(t)
	var workers []*worker
	for range 4 {
		workers = append(workers, start(t, "mixed", dir, each))
	}
	var mu sync.Mutex
	var said []string
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Go(func() {
			lines := w.rest()
			mu.Lock()
			defer mu.Unlock()
			said = append(said, lines...)
		})
	}
	wg.Wait()
	s := open(t, dir, nil)
	if v := holds(t, s); v.Rows != 4*each || len(said) != 4*each {
		t.Errorf("%d rows, %d said", v.Rows, len(said))
	}
	for _, key := range said {
		receipt, err := s.Receipt(t.Context(), state.Key{Key: key, Principal: "g", Workspace: "ws_1", Tool: "t"}, "d", time.Hour)
		if err != nil || string(receipt) != "{}" {
			t.Fatalf("%s: %s %v", key, receipt, err)
		}
	}
	if left, _ := os.ReadDir(dir + "/processes"); len(left) != 0 {
		t.Errorf("%d processes left their files", len(left))
	}
}

// The epoch is the same for all here, as for calls of one server that come at once.
func TestOneApprovalForManyProcesses(t *testing.T) {
	ctx, dir := t.Context(), place(t)
	s := open(t, dir, nil)
	a, _, err := s.Consume(ctx, question, time.Hour)
	must(t, err)
	_, err = s.Decide(ctx, "ws_1", a.ID, true)
	must(t, err)
	var workers []*worker
	for range 4 {
		workers = append(workers, start(t, "consume", dir, 20))
	}
	total := 0
	for _, w := range workers {
		for _, line := range w.rest() {
			n, _ := strconv.Atoi(line)
			total += n
		}
	}
	if total != 1 {
		t.Errorf("one approval was used %d times", total)
	}
}

// A process that is killed while it writes leaves every row it spoke of and a whole chain.
func TestAuditAfterKill(t *testing.T) {
	dir := place(t)
	var said []string
	for round := range 8 {
		w := start(t, "audit", dir, 1_000_000)
		for range 40 + 17*round {
			if !w.out.Scan() {
				t.Fatalf("it ended: %s", &w.errs)
			}
			said = append(said, w.out.Text())
		}
		must(t, w.cmd.Process.Signal(syscall.SIGKILL))
		for w.out.Scan() {
			said = append(said, w.out.Text())
		}
		w.cmd.Wait()
	}
	s := open(t, dir, nil)
	holds(t, s)
	kept := requests(t, s)
	i := 0
	for _, r := range kept { // a row may be there that was not spoken of yet
		if i < len(said) && said[i] == r {
			i++
		}
	}
	if i != len(said) || len(kept) > len(said)+8 {
		t.Errorf("%d said, %d of them kept in order, %d rows", len(said), i, len(kept))
	}
}

// What a killed process reserved is run by nobody; while it lives the call counts as running.
func TestKeyOfAKilledProcess(t *testing.T) {
	dir := place(t)
	s := open(t, dir, nil)
	k := state.Key{Key: "shared-key", Principal: "g", Workspace: "ws_1", Tool: "t"}
	w := start(t, "reserve", dir, 0)
	if !w.out.Scan() || w.out.Text() != "reserved" {
		t.Fatalf("%q %s", w.out.Text(), &w.errs)
	}
	_, _, err := s.Reserve(t.Context(), k, "d", time.Hour)
	refused(t, err, contract.Conflict)
	if lines := start(t, "reserve", dir, 0).rest(); !slices.Equal(lines, []string{"running"}) {
		t.Error(lines)
	}
	must(t, w.cmd.Process.Signal(syscall.SIGKILL))
	w.cmd.Wait()
	for range 2 {
		_, _, err = s.Reserve(t.Context(), k, "d", time.Hour)
		refused(t, err, contract.RecoveryRequired)
	}
	_, _, err = s.Reserve(t.Context(), k, "other", time.Hour)
	refused(t, err, contract.IdempotencyConflict)
}

// A receipt that was promised is there after the process was killed at once.
func TestReceiptAfterTheProcess(t *testing.T) {
	dir := place(t)
	start(t, "reserve", dir, 1).rest()
	if lines := start(t, "reserve", dir, 0).rest(); !slices.Equal(lines, []string{`{"by":1}`}) {
		t.Error(lines)
	}
}
