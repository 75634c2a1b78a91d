package httpd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/httpd"
	"localmcp/internal/fault"
)

// quick makes a door whose times are short.
func quick(t testing.TB, header, request time.Duration, change func(*httpd.Config)) *door {
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	d := openOn(t, l, change)
	d.SetTimes(header, request)
	return d.serve(l)
}

// gone waits for the server to end a connection.
func gone(t testing.TB, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	if err := c.SetReadDeadline(began.Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, c)
	if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the connection is still there")
	}
	return time.Since(began)
}

// TestSlowHeader: a request whose header does not come to its end, and a connection that says
// nothing, are given up.
func TestSlowHeader(t *testing.T) {
	d := quick(t, 200*time.Millisecond, time.Second, nil)
	silent, dribbling := d.dial(), d.dial()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		_, _ = io.WriteString(dribbling, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_, _ = fmt.Fprintf(dribbling, "X-%d: y\r\n", i)
			}
		}
	}()
	for _, c := range []net.Conn{silent, dribbling} {
		if took := gone(t, c); took > 3*time.Second {
			t.Errorf("only after %v", took)
		}
	}
	if r := d.send("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestSlowBody: a body that does not come to its end is given up.
func TestSlowBody(t *testing.T) {
	d := quick(t, time.Second, 200*time.Millisecond, nil)
	for _, text := range []string{
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Length: 100\r\n\r\n{",
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
		"POST /token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
	} {
		c := d.dial()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if took := gone(t, c); took > 3*time.Second {
			t.Errorf("%.20q: only after %v", text, took)
		}
	}
}

// TestLongStream: what is answered may take longer than a request may take to come: a stream
// that listens stays, also on a connection that was used for something else before.
func TestLongStream(t *testing.T) {
	d := quick(t, time.Second, 200*time.Millisecond, nil)
	id := d.send("POST", "/mcp", initialize, as("ann")...).Header.Get("Mcp-Session-Id")
	d.send("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, as("ann", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")...)
	c := d.dial()
	if _, err := io.WriteString(c, "GET /auth HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	r, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	_, err = io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: "+id+"\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	if r, err = http.ReadResponse(in, nil); err != nil || r.StatusCode != 200 {
		t.Fatalf("%v %v", r, err)
	}
	began, lines := time.Now(), bufio.NewScanner(r.Body)
	for time.Since(began) < time.Second { // heartbeats
		if !lines.Scan() {
			t.Fatalf("the stream ended after %v: %v", time.Since(began), lines.Err())
		}
	}
}

// TestLongCall: so may a call.
func TestLongCall(t *testing.T) {
	d := quick(t, time.Second, 200*time.Millisecond, nil)
	r := d.send("POST", "/mcp", strings.Replace(modernPing, `"method":"tools/list","params":{`, `"method":"tools/call","params":{"name":"slow","arguments":{},`, 1),
		as("ann", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "slow")...)
	if r.StatusCode != 200 || !strings.Contains(r.body, `"who":"ann"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// TestHeaderSize: a header is bounded.
func TestHeaderSize(t *testing.T) {
	d := start(t, nil)
	if r := d.send("GET", "/healthz", "", "X-Long", strings.Repeat("x", 16<<10)); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
	// What was not read may reset the connection before the answer is seen.
	r, err := d.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 64<<10) + "\r\n\r\n")
	if err == nil && r.StatusCode != 431 {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestPlaces: connections that ask for nothing do not keep out those that do.
func TestPlaces(t *testing.T) {
	l, err := httpd.ListenFew(4)
	if err != nil {
		t.Fatal(err)
	}
	d := openOn(t, l, nil).serve(l)
	var idle []net.Conn
	for range 12 {
		idle = append(idle, d.dial())
	}
	began := time.Now()
	for range 3 {
		if r := d.send("GET", "/healthz", ""); r.StatusCode != 200 {
			t.Errorf("%d", r.StatusCode)
		}
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("only after %v", took)
	}
	gone(t, idle[0])
}

// TestBusyPlaces: a connection that is being answered is not given up for another, which waits.
func TestBusyPlaces(t *testing.T) {
	l, err := httpd.ListenFew(2)
	if err != nil {
		t.Fatal(err)
	}
	inside, leave := make(chan struct{}, 2), make(chan struct{})
	d := openOn(t, l, func(c *httpd.Config) {
		c.Health = func() any { inside <- struct{}{}; <-leave; return "ok" }
	}).serve(l)
	answers := make(chan int, 3)
	ask := func() {
		r, err := d.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if err != nil {
			answers <- 0
			return
		}
		answers <- r.StatusCode
	}
	for range 2 {
		go ask()
	}
	<-inside
	<-inside
	go ask()
	select {
	case <-inside:
		t.Error("there were only two places")
	case <-time.After(200 * time.Millisecond):
	}
	close(leave)
	for range 3 {
		if s := <-answers; s != 200 {
			t.Errorf("%d", s)
		}
	}
}

// TestPanic: it ends one request, and nobody reads why. What had begun is cut off, so that it
// is not taken for whole.
func TestPanic(t *testing.T) {
	d := start(t, func(c *httpd.Config) {
		c.MCP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp/" {
				_, _ = io.WriteString(w, "data: half")
				_ = http.NewResponseController(w).Flush()
			}
			panic("the secret is in /home/ann")
		})
	})
	r := d.send("POST", "/mcp", "{}", as("ann")...)
	if r.StatusCode != 500 || r.code() != "server_error" || strings.Contains(r.body, "secret") || strings.Contains(r.body, ".go") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	half, err := d.raw("POST /mcp/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Length: 2\r\n\r\n{}")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(half.Body); err == nil || string(b) != "data: half" {
		t.Errorf("%q %v", b, err)
	}
	if r := d.send("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestPort: a port that is in use is named, with the way out.
func TestPort(t *testing.T) {
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = httpd.Listen(l.Port())
	if f := fault.From(err); f.Code != contract.Conflict || !strings.Contains(f.Msg, fmt.Sprint(l.Port())) || !strings.Contains(f.Hint, "--port") {
		t.Errorf("%v", err)
	}
	if host, _, _ := net.SplitHostPort(l.Addr().String()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", host)
	}
}

// TestNothingLeft: after Close nothing goes on, whatever was open: a stream, a connection that
// says nothing, a body that does not come to its end, one that is idle.
func TestNothingLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	d := openOn(t, l, nil)
	served := make(chan error, 1)
	go func() { served <- d.Serve(l) }()
	id := d.send("POST", "/mcp", initialize, as("ann")...).Header.Get("Mcp-Session-Id")
	for _, text := range []string{
		"", "GET /heal", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nContent-Length: 100\r\n\r\n{",
		"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-06-18\r\nMcp-Session-Id: " + id + "\r\n\r\n",
	} {
		c := d.dial()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "GET /mcp") {
			if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	began := time.Now()
	d.mcp.Close(ctx)
	if err := d.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if c, err := net.DialTimeout("tcp", d.address, time.Second); err == nil {
		c.Close()
		t.Error("somebody still listens")
	}
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before+1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}
