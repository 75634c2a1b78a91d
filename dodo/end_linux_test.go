package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/sqlitedb"
)

// mostToEnd is how long a server may take after its client has gone.
const mostToEnd = 2 * time.Second

// TestEndWithABusyState shows that a server ends in time with a call that cannot end: another
// process keeps the database, and the row of the audit waits for it.
func TestEndWithABusyState(t *testing.T) {
	for _, how := range []string{"eof", "term"} {
		t.Run(how, func(t *testing.T) {
			m := newMachine(t)
			s := m.serve(m.dir("w"))
			store, err := state.Open(t.Context(), filepath.Clean(m.Env()["DODO_CONFIG_DIR"]), state.Options{Existing: true})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			held, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				done <- store.Write(t.Context(), func(context.Context, *sqlitedb.Conn) error {
					close(held)
					<-release
					return nil
				})
			}()
			<-held
			fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			fmt.Fprintln(s.in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"project_overview","arguments":{}}}`)
			time.Sleep(300 * time.Millisecond)
			begun := time.Now()
			if how == "eof" {
				s.in.Close()
			} else if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait()
			if took := time.Since(begun); took > mostToEnd {
				t.Errorf("it took %v", took)
			}
			close(release)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEndAnswersWhoWaits shows that calls which wait for a command are answered before a server
// ends, however that comes, also when the command does not want to end.
func TestEndAnswersWhoWaits(t *testing.T) {
	for _, how := range []string{"eof", "term", "stop"} {
		for name, command := range map[string]string{"willing": "touch up; sleep 600", "stubborn": "trap '' TERM; touch up; while :; do sleep 0.1; done"} {
			t.Run(how+" "+name, func(t *testing.T) {
				m := newMachine(t)
				dir := m.workspace()
				c := m.speak("legacy", dir)
				one := c.asks("run_command", fmt.Sprintf(`"command":%q`, command))
				c.until(dir, "up")
				job := c.fine("list_jobs", "").Data["jobs"].([]any)[0].(map[string]any)["jobId"].(string)
				two := c.asks("job_wait", fmt.Sprintf(`"jobId":%q`, job))
				c.fine("list_jobs", "")
				begun := time.Now()
				switch how {
				case "eof":
					c.CloseInput()
				case "term":
					if err := c.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
				case "stop":
					m.ok(nil, "stop")
				}
				if err := c.WaitExit(mostToEnd + time.Second); err != nil {
					t.Errorf("%v\n%s", err, c.Stderr())
				}
				if took := time.Since(begun); how != "stop" && took > mostToEnd {
					t.Errorf("it took %v", took)
				}
				for _, id := range []string{one, two} {
					if e := c.answer(c.Await(id)); e.text("status") != "canceled" || e.text("jobId") != job || len(e.Warnings) == 0 || !strings.Contains(e.Warnings[0], "shut down") {
						t.Errorf("%+v", e)
					}
				}
				if r := m.dodo("audit", "verify"); r.status != 0 {
					t.Errorf("audit verify: %d %s%s", r.status, r.stdout, r.stderr)
				}
			})
		}
	}
}
