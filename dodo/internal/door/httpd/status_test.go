package httpd_test

import (
	"net/http"
	"strings"
	"testing"

	"localmcp/dodo/internal/door/httpd"
)

var everyMethod = []string{"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH"}

// TestNames: who calls the server by another name, or comes from a page that may not call, is
// refused before anything else is looked at, whatever the route and the token.
func TestNames(t *testing.T) {
	d := start(t, nil)
	port := d.address[strings.LastIndex(d.address, ":"):]
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"", "", 200}, // no browser
		{"localhost" + port, "", 200},
		{"LOCALHOST", "", 200},
		{"127.0.0.1:1", "", 200}, // what a tunnel of this machine calls it
		{"127.8.8.8", "", 200},
		{"[::1]" + port, "", 200},
		{"box.local", "", 200},
		{"Box.Local:9", "", 200},
		{"other.local:8443", "", 200},
		{"dodo.example.com", "", 200},
		{"other.local", "", 403},
		{"other.local:8444", "", 403},
		{"evil.example.com", "", 403},
		{"evil.example.com" + port, "", 403},
		{"127.0.0.1.evil.example.com", "", 403},
		{"localhost.evil.example.com", "", 403},
		{"dodo.example.com.evil.example.com", "", 403},
		{"localhost@evil.example.com", "", 403},
		{"[::ffff:127.0.0.1]", "", 403},
		{"[fe80::1]", "", 403},
		{"2130706433", "", 403},
		{"0x7f.1", "", 403},
		{"0.0.0.0" + port, "", 403},
		{"", "https://app.example.com", 200},
		{"", issuer, 200},
		{"", "http://127.0.0.1" + port, 200},
		{"", "http://localhost" + port, 200},
		{"", "http://[::1]" + port, 200},
		{"", "null", 403},
		{"", "", 200},
		{"", "http://localhost", 403}, // another port's page
		{"", "http://localhost:1", 403},
		{"", "https://localhost" + port, 403},
		{"", "https://app.example.com:444", 403},
		{"", "http://app.example.com", 403},
		{"", "https://app.example.com.evil.example.com", 403},
		{"", "https://app.example.com/", 403},
		{"", "https://evil.example.com", 403},
		{"", "file://", 403},
		{"evil.example.com", "https://app.example.com", 403},
	} {
		header := []string{}
		if c.host != "" {
			header = append(header, "Host", c.host)
		}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		r := d.send("GET", "/healthz", "", header...)
		if r.StatusCode != c.want || c.want == 403 && r.code() != "forbidden" {
			t.Errorf("host %q, origin %q: %d %s", c.host, c.origin, r.StatusCode, r.body)
		}
		if c.want == 403 && r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("origin %q: a page may read the refusal", c.origin)
		}
		if c.want != 403 {
			continue
		}
		before := d.reached.Load()
		for _, path := range []string{"/mcp", "/mcp/", "/auth", "/nothing"} {
			for _, method := range append(everyMethod, "OPTIONS") {
				r := d.send(method, path, modernPing, append(header, modern("ann")...)...)
				if r.StatusCode != 403 || r.Header.Get("WWW-Authenticate") != "" {
					t.Errorf("%s %s, host %q, origin %q: %d", method, path, c.host, c.origin, r.StatusCode)
				}
			}
		}
		if d.reached.Load() != before {
			t.Errorf("host %q, origin %q came through", c.host, c.origin)
		}
	}
	two := d.send("GET", "/healthz", "", "Origin", "https://app.example.com", "Origin", "https://app.example.com")
	if two.StatusCode != 403 {
		t.Errorf("two origins: %d", two.StatusCode)
	}
}

// TestPages: a page that may call can ask beforehand, and read what it needs.
func TestPages(t *testing.T) {
	d := start(t, nil)
	ask := []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, mcp-protocol-version"}
	r := d.send("OPTIONS", "/mcp", "", ask...)
	if r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(r.Header.Get("Vary"), "Origin") ||
		!strings.Contains(r.Header.Get("Access-Control-Allow-Headers"), "Authorization") || r.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if d.reached.Load() != 0 {
		t.Error("a question reached the protocol")
	}
	r = d.send("POST", "/mcp", modernPing, append(modern("ann"), "Origin", "https://app.example.com")...)
	if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || !strings.Contains(r.Header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := d.send("OPTIONS", "/mcp", ""); r.StatusCode != 401 { // nobody's question
		t.Errorf("%d", r.StatusCode)
	}
}

// TestTokens: who has no token is told how to get one, before the method, the size or the
// content of the request are looked at.
func TestTokens(t *testing.T) {
	d := start(t, nil)
	const challenge = `Bearer resource_metadata="` + issuer + `/.well-known/oauth-protected-resource/mcp"`
	big := strings.Repeat("x", 20<<10) // more than a call may have
	for _, path := range []string{"/mcp", "/mcp/"} {
		for _, method := range append(everyMethod, "OPTIONS") {
			for _, body := range []string{"", "{", big} {
				for _, c := range []struct{ name, header, code, challenge string }{
					{"none", "", "unauthorized", challenge},
					{"unknown", "Bearer zoe", "invalid_token", challenge + `, error="invalid_token"`},
					{"empty", "Bearer ", "invalid_token", challenge + `, error="invalid_token"`},
					{"another scheme", "Basic YW5uOmFubg==", "invalid_token", challenge + `, error="invalid_token"`},
					{"a name alone", "ann", "invalid_token", challenge + `, error="invalid_token"`},
				} {
					var header []string
					if c.header != "" {
						header = []string{"Authorization", c.header}
					}
					d.later(10e9) // the rates are another test's
					r := d.send(method, path, body, header...)
					if r.StatusCode != 401 || r.Header.Get("WWW-Authenticate") != c.challenge || method != "HEAD" && r.code() != c.code {
						t.Errorf("%s %s %d bytes, %s: %d %q %s", method, path, len(body), c.name, r.StatusCode, r.Header.Get("WWW-Authenticate"), r.body)
					}
					if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
						t.Errorf("%v", r.Header)
					}
				}
			}
		}
	}
	if d.reached.Load() != 0 {
		t.Error("something came through without a token")
	}
	if r := d.send("POST", "/mcp", modernPing, append(modern("ann"), "Authorization", "Bearer ann")...); r.StatusCode != 401 {
		t.Errorf("two tokens: %d", r.StatusCode)
	}
	r := d.send("POST", "/mcp", modernPing, modern("broken")...)
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || strings.Contains(r.body, "/home") || r.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("the state cannot be read: %d %s", r.StatusCode, r.body)
	}
	if r := d.send("POST", "/mcp", modernPing, "Authorization", "bearer ann", "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"); r.StatusCode != 200 {
		t.Errorf("the scheme has no case: %d %s", r.StatusCode, r.body)
	}
}

// TestContent: with a token, size and content are looked at.
func TestContent(t *testing.T) {
	d := start(t, nil)
	for _, c := range []struct {
		name, method, body string
		header             []string
		want               int
		says               string
	}{
		{"modern", "POST", modernPing, modern("ann"), 200, `"tools"`},
		{"old", "POST", initialize, as("ann"), 200, `"protocolVersion":"2025-06-18"`},
		{"too big", "POST", `{"x":"` + strings.Repeat("x", 5000) + `"}`, as("ann"), 413, "payload_too_large"},
		{"no JSON", "POST", `{"jsonrpc":`, as("ann"), 400, "not valid JSON"},
		{"deep", "POST", strings.Repeat("[", 2000), as("ann"), 400, "not valid JSON"},
		{"modern GET", "GET", "", modern("ann"), 405, ""},
		{"modern DELETE", "DELETE", "", modern("ann"), 405, ""},
		{"unknown session", "GET", "", as("ann", "Mcp-Session-Id", "none"), 404, ""},
		{"PUT", "PUT", "{}", as("ann"), 405, ""},
	} {
		r := d.send(c.method, "/mcp", c.body, c.header...)
		if r.StatusCode != c.want || !strings.Contains(r.body, c.says) || r.Header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %s", c.name, r.StatusCode, r.body)
		}
	}
}

// TestOwners: a session is its login's.
func TestOwners(t *testing.T) {
	d := start(t, nil)
	id := d.send("POST", "/mcp", initialize, as("ann")...).Header.Get("Mcp-Session-Id")
	for who, want := range map[string]int{"ann": 202, "bob": 404} {
		r := d.send("POST", "/mcp/", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, as(who, "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18")...)
		if r.StatusCode != want {
			t.Errorf("%s: %d %s", who, r.StatusCode, r.body)
		}
	}
}

// TestLockedDoor: where nobody can log in, that is all that is said.
func TestLockedDoor(t *testing.T) {
	d := start(t, func(c *httpd.Config) { c.Auth, c.Issuer, c.Locked = nil, "", "set publicUrl" })
	for _, method := range append(everyMethod, "OPTIONS") {
		for _, token := range []string{"", "ann"} {
			r := d.send(method, "/mcp", modernPing, "Authorization", token)
			if r.StatusCode != 401 || r.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` || method != "HEAD" && (r.code() != "setup_required" || !strings.Contains(r.body, "publicUrl")) {
				t.Errorf("%s: %d %v %s", method, r.StatusCode, r.Header, r.body)
			}
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/auth": 404, "/token": 404, "/.well-known/oauth-protected-resource": 404, "/": 404, "/mcp/x": 404} {
		if r := d.send("GET", path, ""); r.StatusCode != want {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if d.reached.Load() != 0 {
		t.Error("something came through")
	}
}

// TestSwitching: while no call is taken, one with a token may come again soon; without one it
// is told to log in all the same.
func TestSwitching(t *testing.T) {
	d := start(t, nil)
	d.closed.Store(true)
	r := d.send("POST", "/mcp", modernPing, modern("ann")...)
	if r.StatusCode != 503 || r.code() != "workspace_switching" || r.Header.Get("Retry-After") != "2" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
	}
	if r := d.send("POST", "/mcp", modernPing); r.StatusCode != 401 {
		t.Errorf("%d", r.StatusCode)
	}
	if r := d.send("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
	d.closed.Store(false)
	if r := d.send("POST", "/mcp", modernPing, modern("ann")...); r.StatusCode != 200 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// TestRoutes: there is nothing but what there is.
func TestRoutes(t *testing.T) {
	d := start(t, nil)
	for path, want := range map[string]int{
		"/": 404, "/mcp/x": 404, "/MCP": 404, "/healthz/": 404, "//mcp": 404, "/./mcp": 404, "/x/../mcp": 404, "/mcp//": 404, "/%2e/mcp": 404, "/..%2fmcp": 404,
		"/healthz": 200, "/auth": 200, "/auth?x=y": 200, "/interaction/1": 200, "/interaction": 404, "/favicon.ico": 404,
	} {
		r := d.send("GET", path, "")
		if r.StatusCode != want || want == 404 && r.code() != "not_found" {
			t.Errorf("%s: %d %v %s", path, r.StatusCode, r.Header, r.body)
		}
	}
	for method, want := range map[string]int{"HEAD": 200, "POST": 405, "DELETE": 405, "OPTIONS": 405} {
		if r := d.send(method, "/healthz", ""); r.StatusCode != want || want == 405 && r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d %v", method, r.StatusCode, r.Header)
		}
	}
	for _, bad := range []string{"CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n", "GET http://evil.example.com/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		r, err := d.raw(bad)
		if err != nil || r.StatusCode != http.StatusForbidden {
			t.Errorf("%q: %v %v", bad, r, err)
		}
	}
}
