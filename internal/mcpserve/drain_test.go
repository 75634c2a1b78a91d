package mcpserve_test

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localmcp/internal/mcpserve"
)

// When the input ends, what is answered within 800 ms is still given, and what is not ends
// the session then; a handler that does not listen has 400 ms more.
func TestDrain(t *testing.T) {
	const asked = 100 * time.Millisecond // after that the input ends
	for name, c := range map[string]struct {
		args     string
		answered bool
		ends     time.Duration // after the input
	}{
		"quick":    {`{"millis":300}`, true, 200 * time.Millisecond},
		"in time":  {`{"millis":890}`, true, 790 * time.Millisecond},
		"too late": {`{"millis":1000}`, false, 800 * time.Millisecond},
		"stubborn": {`{"millis":60000,"stubborn":true}`, false, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				var out answers
				done := make(chan error, 1)
				go func() { done <- mcpserve.New(tiny()).Serve(t.Context(), in, &out) }()
				for _, line := range []string{
					`{"jsonrpc":"2.0","id":1,"method":"initialize","params":` + initialize + `}`,
					`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
					`{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":` + toolCall("slow", c.args) + `}`,
				} {
					if _, err := io.WriteString(client, line+"\n"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(asked)
				client.Close()
				began := time.Now()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took < c.ends || took > c.ends+20*time.Millisecond {
					t.Errorf("it ended after %v, want %v", took, c.ends)
				}
				if answered := strings.Contains(out.String(), `"id":"slow"`); answered != c.answered {
					t.Errorf("answered: %t\n%s", answered, out.String())
				}
				time.Sleep(2 * time.Minute) // what was left behind ends, too
			})
		})
	}
}

type answers struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (a *answers) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.Write(p)
}

func (a *answers) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.String()
}
