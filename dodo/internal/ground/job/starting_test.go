package job_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/sandbox"
)

// looking makes the look for secret paths with that number wait until its context ends, or it is
// let go on.
func (w *world) looking(number int64) (begun, goOn chan struct{}) {
	w.t.Helper()
	begun, goOn = make(chan struct{}), make(chan struct{})
	var looks atomic.Int64
	w.kept = func(ctx context.Context) (k sandbox.Kept, err error) {
		if looks.Add(1) != number {
			return k, nil
		}
		close(begun)
		select {
		case <-goOn:
		case <-ctx.Done():
			err = ctx.Err()
		}
		return k, err
	}
	w.reopen()
	return begun, goOn
}

// only gives the id of the one job there is.
func (w *world) only() string {
	w.t.Helper()
	list := w.call("list_jobs", obj{})["jobs"].([]any)
	if len(list) != 1 {
		w.t.Fatalf("%v", list)
	}
	return data(list[0].(map[string]any)).str("jobId")
}

// ways are how a job is ended.
func (w *world) ways() map[string]func(id string) (status string, err error) {
	return map[string]func(id string) (string, error){
		"client": func(id string) (string, error) {
			d, err := w.try("job_cancel", obj{"jobId": id})
			return d.str("status"), err
		},
		"owner":    func(id string) (string, error) { return w.svc.Cancel(context.Background(), id) },
		"shutdown": func(string) (string, error) { return "canceling", w.svc.Stop(context.Background()) },
	}
}

// TestCancelOfAStart: a job that is being started is ended as one that runs, and its command is
// not run.
func TestCancelOfAStart(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"client", "owner", "shutdown"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t)
			begun, _ := w.looking(1)
			answer := make(chan data, 1)
			go func() {
				d, err := w.try("run_command", obj{"command": "touch ran"})
				if err != nil {
					d = data{"status": err.Error()}
				}
				answer <- d
			}()
			<-begun
			id := w.only()
			if d := w.call("job_status", obj{"jobId": id}); d.str("status") != "running" {
				t.Errorf("%v", d)
			}
			if status, err := w.ways()[way](id); err != nil || status != "canceling" {
				t.Errorf("%s, %v", status, err)
			}
			select {
			case d := <-answer:
				if d.str("status") != "canceled" || d["sandboxed"] != nil {
					t.Errorf("%v", d)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it is still being started")
			}
			if d := w.call("job_status", obj{"jobId": id}); d.str("status") != "canceled" {
				t.Errorf("%v", d)
			}
			if _, err := os.Stat(filepath.Join(w.root, "ran")); err == nil {
				t.Error("it was run")
			}
		})
	}
}

// TestInputOfAStart: input for a job that is being started waits for it, for a while.
func TestInputOfAStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	begun, goOn := w.looking(1)
	answer := make(chan data, 1)
	go func() {
		d, err := w.try("run_command", obj{"command": "cat", "stdin": true})
		if err != nil {
			d = data{"status": err.Error()}
		}
		answer <- d
	}()
	<-begun
	id := w.only()
	_, err := w.try("job_input", obj{"jobId": id, "data": "early"})
	f := refused(t, err, contract.Conflict)
	if !f.Retryable || !strings.Contains(f.Msg, "being started") {
		t.Errorf("%+v", f)
	}
	time.AfterFunc(200*time.Millisecond, func() { close(goOn) })
	if d := w.call("job_input", obj{"jobId": id, "data": "x", "closeStdin": true}); d.num("bytesWritten") != 1 {
		t.Errorf("%v", d)
	}
	if d := <-answer; d.str("stdout") != "x" {
		t.Errorf("%v", d)
	}
}

// TestEndIsTheCommands: how a command ended is how it ended, however long it takes to see what
// it changed; and that has a bound.
func TestEndIsTheCommands(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"client", "owner", "timeout"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			begun, _ := w.looking(2)
			id := w.background("echo all", obj{"timeoutMs": 1000})
			<-begun
			if way == "timeout" {
				time.Sleep(1200 * time.Millisecond)
			} else if status, err := w.ways()[way](id); err != nil || status != "exited" {
				t.Errorf("%s, %v", status, err)
			}
			d := w.ended(id)
			if d.str("status") != "exited" || d["exitCode"] != 0.0 {
				t.Errorf("%v", d)
			}
			notes, _ := w.call("job_status", obj{"jobId": id})["notes"].([]any)
			if len(notes) == 0 || !strings.Contains(notes[len(notes)-1].(string), "could not be seen") {
				t.Errorf("%v", notes)
			}
		})
	}
}

// TestStartIsBounded: a caller hears why a start took too long.
func TestStartIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kept = func(context.Context) (sandbox.Kept, error) { return sandbox.Kept{}, context.DeadlineExceeded }
	w.reopen()
	_, err := w.try("run_command", obj{"command": "true"})
	refused(t, err, contract.Timeout)
	if errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
