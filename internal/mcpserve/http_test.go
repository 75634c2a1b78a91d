package mcpserve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

// A web is the tiny server over HTTP. Who comes says the header User.
type web struct {
	*httptest.Server
	t testing.TB
	h *mcpserve.HTTP
}

// who tells the caller.
var who = op.New(op.Spec{Name: "who", Title: "Who", Doc: "Tells who calls.", ReadOnly: true, Idempotent: true},
	func(_ context.Context, c op.Call, _ struct{}) (echoOut, error) { return echoOut{Text: c.Caller}, nil })

func newWeb(t testing.TB, o mcpserve.HTTPOptions) *web {
	if testing.Short() {
		t.Skip("it sends over the loopback interface, whose packets the offline run counts")
	}
	opts := tiny()
	opts.Set = op.NewSet(append(opts.Set.Ops(), who)...)
	user := func(r *http.Request) string { return r.Header.Get("User") }
	o.Caller, o.Owner = user, func(r *http.Request) string { u, _, _ := strings.Cut(user(r), "/"); return u }
	h := mcpserve.New(opts).HTTP(o)
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		h.Close(ctx)
		s.Close()
	})
	return &web{s, t, h}
}

// send makes a request; header are pairs.
func (w *web) send(ctx context.Context, method, body string, header ...string) *http.Response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.URL, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { res.Body.Close() })
	return res
}

// message is the data of the first event of a stream with an id, or the body.
func message(t testing.TB, res *http.Response) string {
	t.Helper()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, `"id":`) {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

const openSession = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// open opens a session of a user.
func (w *web) open(user string, header ...string) (id string) {
	w.t.Helper()
	res := w.send(context.Background(), "POST", openSession, append(header, "User", user)...)
	if m := message(w.t, res); res.StatusCode != 200 || !strings.Contains(m, `"result"`) {
		w.t.Fatalf("%d %s", res.StatusCode, m)
	}
	id = res.Header.Get("Mcp-Session-Id")
	r := w.send(context.Background(), "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "User", user, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")
	if r.StatusCode != 202 {
		w.t.Fatalf("%d", r.StatusCode)
	}
	return id
}

func call(tool, args string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

func modernCall(tool, args string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
}

func modernHeader(tool, user string) []string {
	return []string{"User", user, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", tool}
}

// TestHTTPCallers: each call is its own request's, in both eras, also of one session.
func TestHTTPCallers(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	id := w.open("ann/1")
	var all sync.WaitGroup
	for i := range 40 {
		user := fmt.Sprintf("ann/%d", i)
		all.Go(func() {
			res := w.send(t.Context(), "POST", strings.Replace(call("who", `{}`), `"id":7`, fmt.Sprintf(`"id":%d`, i+10), 1),
				"User", user, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")
			if m := message(t, res); !strings.Contains(m, `"text":"`+user+`"`) {
				t.Errorf("%s: %s", user, m)
			}
			if m := message(t, w.send(t.Context(), "POST", modernCall("who", `{}`), modernHeader("who", user)...)); !strings.Contains(m, `"text":"`+user+`"`) {
				t.Errorf("%s: %s", user, m)
			}
		})
	}
	all.Wait()
}

// TestHTTPSessions: a session is its owner's, an unknown one is not found, and who begins
// anew is not held to an old one.
func TestHTTPSessions(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	id := w.open("ann")
	for _, c := range []struct {
		method, user, id, body string
		want                   int
	}{
		{"POST", "ann", id, call("who", `{}`), 200},
		{"POST", "bob", id, call("who", `{}`), 404},
		{"GET", "bob", id, "", 404},
		{"DELETE", "bob", id, "", 404},
		{"POST", "ann", "none", call("who", `{}`), 404},
		{"GET", "ann", "", "", 400},
		{"PUT", "ann", "", "", 405},
		{"DELETE", "ann", id, "", 204},
		{"POST", "ann", id, call("who", `{}`), 404},
	} {
		header := []string{"User", c.user, "MCP-Protocol-Version", "2025-06-18"}
		if c.id != "" {
			header = append(header, "Mcp-Session-Id", c.id)
		}
		if r := w.send(t.Context(), c.method, c.body, header...); r.StatusCode != c.want {
			t.Errorf("%s as %s in %q: %d, want %d", c.method, c.user, c.id, r.StatusCode, c.want)
		}
	}
	if again := w.open("ann", "Mcp-Session-Id", "none"); again == "" || again == "none" {
		t.Errorf("%q", again)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if r := w.send(t.Context(), method, "", "User", "ann", "MCP-Protocol-Version", "2026-07-28"); r.StatusCode != 405 {
			t.Errorf("modern %s: %d", method, r.StatusCode)
		}
	}
}

// TestHTTPRoom: an owner's sessions make room for new ones, and never another owner's.
func TestHTTPRoom(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{MaxSessions: 5, MaxOwned: 3})
	kept := w.open("bob")
	first := w.open("ann")
	for range 3 {
		w.open("ann")
	}
	alive := func(user, id string) bool {
		return w.send(t.Context(), "POST", call("who", `{}`), "User", user, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18").StatusCode == 200
	}
	if alive("ann", first) || !alive("bob", kept) {
		t.Error("the wrong session made room")
	}
	w.open("cid")
	if r := w.send(t.Context(), "POST", openSession, "User", "dan"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestHTTPOpenTogether: a session that is opened while others are is there at once.
func TestHTTPOpenTogether(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{})
	var all sync.WaitGroup
	for i := range 24 {
		user := fmt.Sprintf("user%d", i)
		all.Go(func() {
			for range 25 {
				id := w.send(t.Context(), "POST", openSession, "User", user).Header.Get("Mcp-Session-Id")
				header := []string{"User", user, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18"}
				if r := w.send(t.Context(), "POST", call("who", `{}`), header...); r.StatusCode != 200 {
					t.Errorf("%q: %d", id, r.StatusCode)
				}
				if r := w.send(t.Context(), "DELETE", "", header...); r.StatusCode != 204 {
					t.Errorf("%q: its end: %d", id, r.StatusCode)
				}
			}
		})
	}
	all.Wait()
}

// TestHTTPBounds: what is too big, too deep or no JSON is refused.
func TestHTTPBounds(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{MaxBody: 4000})
	for body, want := range map[string]int{
		strings.Repeat(" ", 4001): 413,
		`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`: 400,
		`{`: 400, `{"a":1}}`: 400, "": 400, "[]": 400, "null": 400, "\xff": 400,
	} {
		if r := w.send(t.Context(), "POST", body, "User", "ann"); r.StatusCode != want {
			t.Errorf("%.20q: %d, want %d", body, r.StatusCode, want)
		}
	}
}

// TestHTTPHeartbeat: who waits for long hears something on the way.
func TestHTTPHeartbeat(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{Heartbeat: 50 * time.Millisecond})
	for _, r := range []*http.Response{
		w.send(t.Context(), "POST", modernCall("slow", `{"millis":400}`), modernHeader("slow", "ann")...),
		w.send(t.Context(), "POST", call("slow", `{"millis":400}`), "User", "ann", "MCP-Protocol-Version", "2025-06-18", "Mcp-Session-Id", w.open("ann")),
	} {
		b, err := io.ReadAll(r.Body)
		if err != nil || strings.Count(string(b), ": waiting\n\n") < 3 || !strings.Contains(string(b), `"steps"`) || r.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%v %v %s", err, r.Header, b)
		}
	}
}

// TestHTTPDropped: a modern request whose client went away ends its call.
func TestHTTPDropped(t *testing.T) {
	w := newWeb(t, mcpserve.HTTPOptions{Heartbeat: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	r := w.send(ctx, "POST", modernCall("slow", `{"millis":60000}`), modernHeader("slow", "ann")...)
	if r.StatusCode != 200 {
		t.Fatal(r.StatusCode)
	}
	cancel()
	begun := time.Now()
	end, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	w.h.Close(end) // waits for what runs
	if d := time.Since(begun); d > 5*time.Second {
		t.Errorf("the call went on for %s", d)
	}
}

// TestHTTPClose: listening streams end, running calls are told so and answer, and later requests are refused;
// nothing is left.
func TestHTTPClose(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWeb(t, mcpserve.HTTPOptions{Heartbeat: 20 * time.Millisecond})
	id := w.open("ann")
	listening := w.send(t.Context(), "GET", "", "User", "ann", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")
	running := w.send(t.Context(), "POST", modernCall("slow", `{"millis":300}`), modernHeader("slow", "ann")...)
	if listening.StatusCode != 200 || running.StatusCode != 200 {
		t.Fatal(listening.StatusCode, running.StatusCode)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	w.h.Close(ctx)
	if ctx.Err() != nil {
		t.Error("it did not end in time")
	}
	if b, err := io.ReadAll(listening.Body); err != nil {
		t.Errorf("%v %s", err, b)
	}
	if m := message(t, running); !strings.Contains(m, "the program is ending") {
		t.Error(m)
	}
	refused := w.send(t.Context(), "POST", openSession, "User", "ann")
	if refused.StatusCode != 503 {
		t.Error(refused.StatusCode)
	}
	for _, r := range []*http.Response{listening, running, refused} {
		r.Body.Close()
	}
	w.Server.Close()
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// FuzzHTTPBody: whatever a client sends is answered.
func FuzzHTTPBody(f *testing.F) {
	for _, body := range []string{openSession, call("who", `{}`), modernCall("who", `{}`), `[` + openSession + `]`, `{"method":"server/discover","id":1}`, "{", `{"id":{}}`} {
		f.Add(body, "2026-07-28")
		f.Add(body, "")
	}
	w := newWeb(f, mcpserve.HTTPOptions{MaxBody: 1 << 16})
	f.Fuzz(func(t *testing.T, body, version string) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Content-Type", "application/json")
		r.Header["Mcp-Protocol-Version"] = []string{version}
		r.Header.Set("User", "ann")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a stream that listens has no end
		defer cancel()
		res := httptest.NewRecorder()
		w.h.ServeHTTP(res, r.WithContext(ctx))
		if b := res.Body.Bytes(); res.Header().Get("Content-Type") == "application/json" && len(b) > 0 && !json.Valid(b) {
			t.Errorf("%d %s", res.Code, b)
		}
	})
}
