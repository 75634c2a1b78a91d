package httpd_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/httpd"
	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
)

// issuer is the public address of the doors.
const issuer = "https://dodo.example.com"

// A door is a server on a port, with the protocol behind it.
type door struct {
	*httpd.Server
	t       testing.TB
	address string
	mcp     *mcpserve.HTTP
	now     atomic.Int64 // nanoseconds that its clock is ahead
	closed  atomic.Bool
	reached atomic.Int64 // requests that came as far as the protocol or the login
}

// guests let in who has the token "ann" or "bob".
type guests struct {
	login http.Handler
}

func (guests) Verify(_ context.Context, token string) (httpd.Who, error) {
	switch token {
	case "ann", "bob":
		return httpd.Who{Caller: token, Owner: token}, nil
	case "broken":
		return httpd.Who{}, errors.New("the disk at /home/ann/.config is gone")
	}
	return httpd.Who{}, fault.New(contract.AuthRequired, "the token is none of this server")
}

func (guests) Challenge(refused error) string {
	c := `Bearer resource_metadata="` + issuer + `/.well-known/oauth-protected-resource/mcp"`
	if refused != nil {
		c += `, error="invalid_token"`
	}
	return c
}

func (g guests) Handler() http.Handler { return g.login }

func (guests) Paths() []string {
	return []string{"/auth", "/token", "/interaction/{id}", "/.well-known/oauth-protected-resource"}
}

type whoOut struct {
	Who string `json:"who" doc:"Who calls."`
}

// openOn makes a door that does not serve yet; change may be nil.
func openOn(t testing.TB, l *httpd.Listener, change func(*httpd.Config)) *door {
	t.Helper()
	d := &door{t: t, address: l.Addr().String()}
	who := op.New(op.Spec{Name: "who", Title: "Who", Doc: "Tells who calls.", ReadOnly: true, Idempotent: true},
		func(_ context.Context, c op.Call, _ struct{}) (whoOut, error) {
			return whoOut{c.Caller}, nil
		})
	slow := op.New(op.Spec{Name: "slow", Title: "Slow", Doc: "Tells it late.", ReadOnly: true, Idempotent: true},
		func(ctx context.Context, c op.Call, _ struct{}) (whoOut, error) {
			select {
			case <-ctx.Done():
				return whoOut{}, ctx.Err()
			case <-time.After(600 * time.Millisecond):
				return whoOut{c.Caller}, nil
			}
		})
	d.mcp = mcpserve.New(mcpserve.Options{Name: "door", Version: "1.0.0", Set: op.NewSet(who, slow)}).
		HTTP(mcpserve.HTTPOptions{Caller: httpd.CallerOf, Owner: httpd.OwnerOf, MaxBody: 4096, Heartbeat: 50 * time.Millisecond})
	count := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.reached.Add(1); h.ServeHTTP(w, r) })
	}
	c := httpd.Config{
		Hosts: []string{"box.local", "other.local:8443"}, Origins: []string{"https://app.example.com"}, Issuer: issuer, Port: l.Port(),
		MCP: count(d.mcp), Closed: d.closed.Load, Health: func() any { return map[string]string{"status": "ok"} },
		Auth: guests{count(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "login") }))},
		Now:  func() time.Time { return time.Now().Add(time.Duration(d.now.Load())) },
	}
	if change != nil {
		change(&c)
	}
	d.Server = httpd.New(c)
	return d
}

// serve begins to answer; what is set before holds.
func (d *door) serve(l *httpd.Listener) *door {
	served := make(chan error, 1)
	go func() { served <- d.Serve(l) }()
	d.t.Cleanup(func() {
		d.close()
		if err := <-served; err != nil {
			d.t.Errorf("serve: %v", err)
		}
	})
	return d
}

// start makes a door that serves.
func start(t testing.TB, change func(*httpd.Config)) *door {
	t.Helper()
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	return openOn(t, l, change).serve(l)
}

func (d *door) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	d.mcp.Close(ctx)
	if err := d.Close(ctx); err != nil {
		d.t.Errorf("close: %v", err)
	}
}

// later lets time pass for the rates.
func (d *door) later(by time.Duration) { d.now.Add(int64(by)) }

// dial opens a connection.
func (d *door) dial() net.Conn {
	d.t.Helper()
	c, err := net.Dial("tcp", d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		d.t.Fatal(err)
	}
	return c
}

type reply struct {
	*http.Response
	body string
}

// code is the error that is told.
func (r reply) code() string {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal([]byte(r.body), &e) // what is none has none
	return strings.Trim(string(e.Error), `"`)
}

// send makes a request on a connection of its own; header are pairs, and Host is one.
func (d *door) send(method, path, body string, header ...string) reply {
	d.t.Helper()
	r, err := http.NewRequest(method, "http://"+d.address+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Close = true
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Add(header[i], header[i+1])
	}
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(r)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatalf("%s %s: %v", method, path, err)
	}
	return reply{res, string(data)}
}

// as is the header of somebody's call of the old era.
func as(token string, more ...string) []string {
	return append([]string{"Authorization", "Bearer " + token, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}, more...)
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	modernPing = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

func modern(token string) []string {
	return as(token, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
}

// raw sends bytes, and reads one response.
func (d *door) raw(text string) (*http.Response, error) {
	d.t.Helper()
	c := d.dial()
	if _, err := fmt.Fprint(c, text); err != nil {
		return nil, err
	}
	return http.ReadResponse(bufio.NewReader(c), nil)
}
