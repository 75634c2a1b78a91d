package main

import (
	"context"
	"fmt"
	"path/filepath"
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
