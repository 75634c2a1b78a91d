package mcpserve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/internal/mcpserve"
)

// TestHTTPHiddenInitialize: however an initialize is written, no more sessions come of it than
// an owner may have.
func TestHTTPHiddenInitialize(t *testing.T) {
	for name, body := range map[string]string{
		"batch":     "[" + openSession + "]",
		"batch too": `[{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}},` + openSession + "]",
		"twice":     strings.Replace(openSession, `"method"`, `"method":"ping","method"`, 1),
		"last":      strings.Replace(openSession, `}}}`, `}},"method":"ping"}`, 1),
		"escaped":   strings.Replace(openSession, `"method"`, `"m\u0065thod"`, 1),
		"capital":   strings.Replace(openSession, `"method"`, `"Method"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, mcpserve.HTTPOptions{MaxOwned: 2})
			var ids []string
			for range 5 {
				res := w.send(t.Context(), "POST", body, "User", "ann", "MCP-Protocol-Version", "2025-03-26")
				if id := res.Header.Get("Mcp-Session-Id"); id != "" {
					ids = append(ids, id)
				}
			}
			live := 0
			for end := time.Now().Add(3 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				live = 0
				for _, id := range ids {
					if w.send(t.Context(), "POST", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "User", "ann", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-03-26").StatusCode == 200 {
						live++
					}
				}
				if live <= 2 || time.Now().After(end) {
					break
				}
			}
			if live > 2 {
				t.Errorf("%d sessions", live)
			}
		})
	}
}

// TestHTTPOneOwnerLeavesCalls: calls that an owner began and left behind do not keep others'
// from running. In the era of sessions who goes away ends no call.
func TestHTTPOneOwnerLeavesCalls(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	id := w.open("ann")
	header := func(user string) []string {
		return []string{"User", user, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18"}
	}
	refused := 0
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		r, err := http.NewRequestWithContext(ctx, "POST", w.URL, strings.NewReader(strings.Replace(call("slow", `{"millis":5000}`), `"id":7`, fmt.Sprintf(`"id":%d`, i+10), 1)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		for h := header(fmt.Sprintf("ann/%d", i)); len(h) > 0; h = h[2:] {
			r.Header.Set(h[0], h[1])
		}
		if res, err := http.DefaultClient.Do(r); err == nil {
			b, _ := io.ReadAll(res.Body) // it may be cut off
			res.Body.Close()
			if strings.Contains(string(b), `"busy"`) {
				refused++
			}
		}
		cancel()
	}
	if refused != 12 {
		t.Errorf("%d of 20 calls were refused", refused)
	}
	begun := time.Now()
	m := message(t, w.send(t.Context(), "POST", modernCall("echo", `{"text":"hi"}`), modernHeader("echo", "bob")...))
	if d := time.Since(begun); !strings.Contains(m, "hi") || d > 2*time.Second {
		t.Errorf("after %s: %s", d, m)
	}
}

// TestHTTPLargeRequests: one owner's large requests are answered a few at a time, and do not
// delay others' or small ones.
func TestHTTPLargeRequests(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	ask := func(user, millis string, padding int) (code int, took time.Duration) {
		begun := time.Now()
		res := w.send(t.Context(), "POST", modernCall("slow", `{"millis":`+millis+`}`)+strings.Repeat(" ", padding), modernHeader("slow", user)...)
		if m := message(t, res); !strings.Contains(m, `"steps"`) {
			t.Error(m)
		}
		return res.StatusCode, time.Since(begun)
	}
	var all sync.WaitGroup
	var longest atomic.Int64
	for i := range 7 { // half of all calls may be one's
		all.Go(func() {
			_, took := ask(fmt.Sprintf("ann/%d", i), "1500", 300_000)
			for old := longest.Load(); int64(took) > old && !longest.CompareAndSwap(old, int64(took)); old = longest.Load() {
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	if _, took := ask("ann/x", "0", 0); took > 1200*time.Millisecond {
		t.Errorf("a small one took %s", took)
	}
	if _, took := ask("bob", "0", 300_000); took > 1200*time.Millisecond {
		t.Errorf("another's took %s", took)
	}
	all.Wait()
	if d := time.Duration(longest.Load()); d < 2700*time.Millisecond {
		t.Errorf("all were answered at once, within %s", d)
	}
}

// TestHTTPLargeInitialize: what opens a session is kept as long as the session, so it is small.
func TestHTTPLargeInitialize(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	body := strings.Replace(openSession, `"name":"t"`, `"name":"`+strings.Repeat("t", 1<<20)+`"`, 1)
	if res := w.send(t.Context(), "POST", body, "User", "ann"); res.StatusCode != http.StatusRequestEntityTooLarge || res.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}
