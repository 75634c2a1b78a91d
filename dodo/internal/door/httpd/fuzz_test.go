package httpd_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/door/httpd"
)

// FuzzGuards: whatever a request says of itself, nothing but a name of the server's and a page
// that may call comes through, and nothing without a token reaches the protocol.
func FuzzGuards(f *testing.F) {
	for _, host := range []string{"localhost", "127.0.0.1:21730", "[::1]", "evil.example.com", "box.local", "[", "]:", "[::1%lo]", "", ":"} {
		f.Add(host, "", "Bearer ann", "/mcp", "POST")
		f.Add("localhost", "http://"+host, "bearer zoe", "/healthz", "GET")
	}
	f.Add("localhost", "null", "", "//mcp", "OPTIONS")
	reached := ""
	s := httpd.New(httpd.Config{
		Hosts: []string{"box.local"}, Origins: []string{"https://app.example.com"}, Issuer: issuer, Port: 21730,
		MCP:    http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached = httpd.OwnerOf(r) }),
		Auth:   guests{http.NotFoundHandler()},
		Health: func() any { return "ok" },
		Rates:  httpd.Rates{Principal: httpd.Rate{PerSecond: 1e9, Burst: 1e9}, Address: httpd.Rate{PerSecond: 1e9, Burst: 1e9}, Login: httpd.Rate{PerSecond: 1e9, Burst: 1e9}},
	})
	pages := []string{"https://app.example.com", issuer, "http://127.0.0.1:21730", "http://localhost:21730", "http://[::1]:21730"}
	f.Fuzz(func(t *testing.T, host, origin, token, path, method string) {
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		r, err := http.NewRequest(method, "http://x/", io.NopCloser(strings.NewReader("{}")))
		if err != nil {
			t.Skip()
		}
		r.URL.Path, r.Host, r.RemoteAddr = path, host, "127.0.0.1:1"
		if origin != "" {
			r.Header["Origin"] = []string{origin}
		}
		if token != "" {
			r.Header["Authorization"] = []string{token}
		}
		reached = ""
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s", w.Body)
		}
		if origin != "" && !slices.Contains(pages, origin) && w.Code != http.StatusForbidden {
			t.Errorf("origin %q: %d", origin, w.Code)
		}
		if w.Code != http.StatusForbidden && !ours(host) {
			t.Errorf("host %q: %d", host, w.Code)
		}
		if word := strings.TrimSpace(token[min(len(token), len("bearer ")):]); reached != "" && reached != word {
			t.Errorf("%q is %q", token, reached)
		}
		if reached == "" && w.Code == http.StatusOK && path != "/healthz" && method != http.MethodOptions {
			t.Errorf("%s %s: %d", method, path, w.Code)
		}
	})
}

// ours is another way to say which names are the server's: a name, and then at most a port.
func ours(host string) bool {
	name := strings.ToLower(host)
	for _, own := range []string{"localhost", "box.local", "dodo.example.com"} {
		if rest, ok := strings.CutPrefix(strings.Trim(name, "[]"), own); ok && (rest == "" || strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "]")) {
			return true
		}
	}
	if a, err := netip.ParseAddrPort(host); err == nil {
		return a.Addr().IsLoopback()
	}
	if i := strings.LastIndex(name, ":"); i >= 0 && !strings.Contains(name[i:], "]") && strings.Contains(name[:i], ".") {
		name = name[:i]
	}
	a, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil && a.IsLoopback()
}
