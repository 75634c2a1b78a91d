package mcpserve_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localmcp/internal/mcpserve"
)

// When the input ends, what is answered within 800 ms is still given. What is not is told to end
// then, as all is at once when the program is told to stop, and answers that; a handler that does
// not listen ends the session 400 ms later. What waits for something that AtEnd ends answers as
// always.
func TestDrain(t *testing.T) {
	const (
		asked  = 100 * time.Millisecond // after that the end comes
		whole  = `"structuredContent":{"steps":`
		ending = "cancelled: the program is ending"
	)
	for name, c := range map[string]struct {
		args   string
		stop   bool // by its context; else by the end of its input
		atEnd  time.Duration
		answer string
		ends   time.Duration // after the end came
	}{
		"quick":         {`{"millis":300}`, false, 0, whole, 200 * time.Millisecond},
		"in time":       {`{"millis":890}`, false, 0, whole, 790 * time.Millisecond},
		"too late":      {`{"millis":1000}`, false, 0, ending, 800 * time.Millisecond},
		"stubborn":      {`{"millis":60000,"stubborn":true}`, false, 0, "", 1200 * time.Millisecond},
		"stopped":       {`{"millis":60000}`, true, 0, ending, 0},
		"stopped, idle": {`{"millis":0}`, true, 0, whole, 0},
		"stopped hard":  {`{"millis":60000,"stubborn":true}`, true, 0, "", 400 * time.Millisecond},
		"helped":        {`{"millis":600,"stubborn":true}`, true, 500 * time.Millisecond, whole, 500 * time.Millisecond},
		"helped late":   {`{"millis":60000,"stubborn":true}`, true, time.Minute, "", 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, client := io.Pipe()
				var out answers
				done := make(chan error, 1)
				o := tiny()
				if c.atEnd > 0 {
					o.AtEnd = func() { time.Sleep(c.atEnd) }
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go func() { done <- mcpserve.New(o).Serve(ctx, in, &out) }()
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
				began := time.Now()
				if c.stop {
					stop()
				} else {
					client.Close()
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				client.Close()
				if took := time.Since(began); took < c.ends || took > c.ends+20*time.Millisecond {
					t.Errorf("it ended after %v, want %v", took, c.ends)
				}
				if _, answer, answered := strings.Cut(out.String(), `"id":"slow"`); answered != (c.answer != "") || !strings.Contains(answer, c.answer) {
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
