package httpd_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/door/httpd"
)

// open answers whoever comes to log in.
type open struct{}

func (open) Verify(context.Context, string) (httpd.Who, error) { return httpd.Who{Owner: "ann"}, nil }
func (open) Challenge(error) string                            { return "Bearer" }
func (open) Paths() []string                                   { return []string{"/auth", "/jwks"} }
func (open) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}

// hostileDoor starts a server and gives what sends bytes to it as they are, and gives the status. at
// gets its address.
func hostileDoor(t *testing.T, c httpd.Config, at ...*string) (send func(lines ...string) string) {
	t.Helper()
	l, err := httpd.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	c.Port, c.Auth, c.Health, c.MCP = l.Port(), open{}, func() any { return "ok" }, http.NotFoundHandler()
	for _, a := range at {
		*a = l.Addr().String()
	}
	s, served := httpd.New(c), make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return func(lines ...string) string {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprint(conn, strings.Join(append(lines, "", ""), "\r\n"))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", lines, err)
		}
		return strings.Fields(line)[1]
	}
}

// TestEmbedded: the pages of other sites cannot make the owner's browser ask for anything on
// the quiet, and so cannot use up what it may ask. Links lead here.
func TestEmbedded(t *testing.T) {
	send := hostileDoor(t, httpd.Config{})
	fetch := func(path, site, mode, dest string) string {
		return send("GET "+path+" HTTP/1.1", "Host: 127.0.0.1", "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: "+mode, "Sec-Fetch-Dest: "+dest)
	}
	for range 200 { // more than a burst
		if code := fetch("/auth", "cross-site", "no-cors", "image"); code != "403" {
			t.Fatal(code)
		}
	}
	for _, x := range []struct{ path, site, mode, dest, want string }{
		{"/auth", "cross-site", "navigate", "document", "200"},
		{"/auth", "same-site", "navigate", "document", "200"},
		{"/auth", "none", "navigate", "document", "200"},
		{"/jwks", "same-origin", "cors", "empty", "200"},
		{"/auth", "cross-site", "navigate", "iframe", "403"},
		{"/auth", "cross-site", "navigate", "object", "403"},
		{"/auth", "same-site", "no-cors", "script", "403"},
		{"/mcp", "cross-site", "no-cors", "empty", "403"},
		{"/healthz", "cross-site", "websocket", "empty", "403"},
	} {
		if code := fetch(x.path, x.site, x.mode, x.dest); code != x.want {
			t.Errorf("%+v: %s", x, code)
		}
	}
	// A page that the owner allows says its origin.
	if code := hostileDoor(t, httpd.Config{Origins: []string{"https://inspector.example"}})("GET /jwks HTTP/1.1", "Host: 127.0.0.1",
		"Origin: https://inspector.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty"); code != "200" {
		t.Error(code)
	}
}

// TestHostileNames: whatever way the server is called, it answers to its own names only.
func TestHostileNames(t *testing.T) {
	send := hostileDoor(t, httpd.Config{Issuer: "https://dodo.example.com"})
	for want, list := range map[string][]string{
		"200": {
			"GET /healthz HTTP/1.1\r\nHost: LOCALHOST:1", "GET /healthz HTTP/1.1\r\nHost: [::1]:9", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1",
			"GET /healthz HTTP/1.1\r\nHost: DODO.example.com", "GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: evil.example",
		},
		"403": {
			"GET /healthz HTTP/1.1\r\nHost: evil.example", "GET /healthz HTTP/1.1\r\nHost: localhost.", "GET /healthz HTTP/1.1\r\nHost: dodo.example.com.",
			"GET /healthz HTTP/1.1\r\nHost: [::ffff:127.0.0.1]", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1.evil.example", "GET /healthz HTTP/1.1\r\nHost: dodo.example.com.evil.example",
			"GET http://evil.example/healthz HTTP/1.1\r\nHost: 127.0.0.1", "GET /healthz HTTP/1.0", "GET /healthz HTTP/1.1\r\nHost:", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443",
			"OPTIONS * HTTP/1.1\r\nHost: evil.example", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://localhost:1",
			"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin:", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://dodo.example.com\r\nOrigin: https://dodo.example.com",
		},
		"400": {"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1@evil.example", "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n:caller: ann"},
	} {
		for _, head := range list {
			if code := send(head); code != want {
				t.Errorf("%q: %s, not %s", head, code, want)
			}
		}
	}
}
