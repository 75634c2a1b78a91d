package oauth

import (
	"net/url"
	"strings"
	"testing"
)

// TestRedirects: what may be registered, and what may not.
func TestRedirects(t *testing.T) {
	for raw, kind := range map[string]redirectKind{
		"https://claude.ai/api/mcp/auth_callback":              redirectWeb,
		"https://chatgpt.com/connector/oauth/abc_DEF":          redirectWeb,
		"https://a.example:8443/cb?x=1":                        redirectWeb,
		"https://192.0.2.7/cb":                                 redirectWeb,
		"https://[2001:db8::1]:8443/cb":                        redirectWeb,
		"https://xn--bcher-kva.example/cb":                     redirectWeb,
		"https://a.example":                                    redirectWeb,
		"http://127.0.0.1/":                                    redirectLoopback,
		"http://127.0.0.1:33418/":                              redirectLoopback,
		"http://localhost:1/oauth/callback":                    redirectLoopback,
		"http://[::1]:65535/cb":                                redirectLoopback,
		"http://localhost":                                     redirectLoopback,
		"cursor://anysphere.cursor-mcp/oauth/callback":         redirectCustom,
		"com.example.app:/cb":                                  redirectCustom,
		"vscode://vscode.github-authentication/did-authentica": redirectCustom,
	} {
		if r, why := parseRedirect(raw); why != "" || r.kind != kind || r.raw != raw {
			t.Errorf("%s: %+v %s", raw, r, why)
		}
	}
	for _, raw := range []string{
		"", "/cb", "//a.example/cb", "a.example/cb", "https:a.example/cb", "https:/a.example/cb", "https:///cb", "https://", "https://:8443/cb",
		"javascript://a.example/%0aalert(1)", "javascript:alert(1)", "JavaScript://a.example/", "data:text/html,x", "data://a.example/", "file:///etc/passwd",
		"vbscript:x", "blob:https://a.example/1", "about:blank", "ftp://a.example/", "ws://a.example/", "view-source:https://a.example/", "mailto:/a",
		"intent://a.example/#Intent;end", "ms-settings:/x", "tel:/1",
		"https://a.example/cb#", "https://a.example/cb#x", "http://127.0.0.1/#", "com.example.app:/cb#x",
		"https://user@a.example/cb", "https://a.example@evil.example/cb", "https://user:pass@a.example/", "https://@a.example/", "http://127.0.0.1@evil.example/",
		"http://user@127.0.0.1/", "http://127.0.0.1:80@evil.example/", "cursor://user@host/", "https://a.example%40evil.example/", "https://a.example%2f@evil.example/",
		"https://*.a.example/cb", "https://a.example/*", "http://127.0.0.1:*/", "https://a.example/c b", "https://a.example/\t", "https://a.example\\@evil.example/", "https://a.example/\\evil",
		"https://a.example/cb\r\nSet-Cookie: x", "https://a.example/\x00", "https://b\u00fccher.example/", "https://a.example/\u202e",
		"http://a.example/cb", "http://127.0.0.2/cb", "http://127.1/cb", "http://0.0.0.0/cb", "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/",
		"http://localhost./cb", "http://LOCALHOST/cb", "http://localhost.evil.example/", "http://127.0.0.1.evil.example/", "http://[::ffff:127.0.0.1]/", "http://[0:0:0:0:0:0:0:1]/",
		"http://[::1%25lo]/", "http://[::1]evil.example/", "http://::1/", "http://[::1/",
		"http://127.0.0.1:0/", "http://127.0.0.1:/", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", "http://127.0.0.1:080/", "http://127.0.0.1:1:2/", "http://127.0.0.1:1e3/",
		"HTTPS://a.example/", "https://A.example/", "https://a.example./", "https://a..example/", "https://-a.example/", "https://.a.example/", "https://a.example:443/", "https://a.example:/",
		"https://127.1/", "https://0x7f.1/", "https://1.2.3/", "https://1.2.3.4.5/", "https://01.2.3.4/", "https://256.1.1.1/", "https://a.0x1f/", "https://a.7/",
		"https://[2001:DB8::1]/", "https://[2001:db8:0:0::1]/", "https://[::ffff:192.0.2.1]/", "https://[fe80::1%25eth0]/", "https://[::1", "https://a[b]/",
		"https://a.example/cb?code=1", "https://a.example/cb?x=1&state=2", "https://a.example/?iss=x", "https://a.example/?err%6fr=x", "https://a.example/?a=%zz", "https://a.example/%zz",
		"com.example.app:cb", "com.example.app:", "1com.example:/cb", "com_example.app:/cb", "evil:/cb", "claude.ai", "https://a.example/" + strings.Repeat("a", redirectBytes),
	} {
		if r, why := parseRedirect(raw); why == "" {
			t.Errorf("%q was taken: %+v", raw, r)
		}
	}
}

// TestRedirectFits: only the port of a loopback address is free.
func TestRedirectFits(t *testing.T) {
	registered := []string{"https://a.example/cb", "http://127.0.0.1/", "http://127.0.0.1:33418/cb?x=1", "http://[::1]:1/cb", "com.example.app:/cb", "https://127.0.0.1:8443/cb"}
	for raw, want := range map[string]bool{
		"https://a.example/cb": true, "http://127.0.0.1/": true, "http://127.0.0.1:5/": true, "http://127.0.0.1:5/cb?x=1": true, "http://[::1]:999/cb": true, "http://[::1]/cb": true,
		"com.example.app:/cb": true, "https://127.0.0.1:8443/cb": true,
		"https://a.example/cb/": false, "https://a.example/CB": false, "https://a.example/cb?": false, "https://a.example/cb?x=1": false, "https://a.example/%63b": false,
		"https://a.example/cb/../cb": false, "https://a.example/./cb": false, "https://a.example//cb": false, "https://a.example%2fcb": false, "https://a.example:8443/cb": false,
		"http://a.example/cb": false, "http://127.0.0.1": false, "http://localhost/": false, "http://localhost:5/": false, "http://127.0.0.1:5/x": false, "http://127.0.0.1:5/cb": false,
		"http://127.0.0.1:5/cb?x=2": false, "http://127.0.0.1:5//": false, "http://127.0.0.1:5/%2f": false, "http://[::1]:1/cb/": false, "com.example.app:/cb2": false,
		"com.example.app:/": false, "https://127.0.0.1:8444/cb": false, "https://evil.example/cb": false,
	} {
		asked, why := parseRedirect(raw)
		if got := why == "" && fits(registered, asked); got != want {
			t.Errorf("%s: %v (%s)", raw, got, why)
		}
	}
	if r, _ := parseRedirect("https://a.example/cb"); fits([]string{"https://a.example/c", "not an address", ""}, r) {
		t.Error("it fits what is not the same")
	}
}

// TestRedirectAnswer: the answer is added to what stands there.
func TestRedirectAnswer(t *testing.T) {
	for raw, want := range map[string]string{
		"https://a.example/cb":       "https://a.example/cb?code=a%26b",
		"https://a.example":          "https://a.example?code=a%26b",
		"https://a.example/cb?x=1":   "https://a.example/cb?x=1&code=a%26b",
		"https://a.example/cb?":      "https://a.example/cb?code=a%26b",
		"com.example.app:/cb":        "com.example.app:/cb?code=a%26b",
		"cursor://a/oauth/callback":  "cursor://a/oauth/callback?code=a%26b",
		"http://[::1]:5/cb?y=%2f&z=": "http://[::1]:5/cb?y=%2f&z=&code=a%26b",
	} {
		r, why := parseRedirect(raw)
		if got := r.with(url.Values{"code": {"a&b"}}); why != "" || got != want {
			t.Errorf("%s %s", got, why)
		}
	}
	for raw, want := range map[string]string{
		"https://a.example/cb": "https://a.example", "http://127.0.0.1:5/cb": "http://127.0.0.1:5", "http://[::1]:5/cb": "http:", "cursor://a/cb": "cursor:", "com.a.b:/cb": "com.a.b:",
	} {
		if r, _ := parseRedirect(raw); r.source() != want {
			t.Errorf("%s: %s", raw, r.source())
		}
	}
}

// FuzzRedirect: what is taken leads, as a browser or a library reads it, to the host that is
// shown, and the answer stays in the query.
func FuzzRedirect(f *testing.F) {
	for _, s := range []string{
		"https://a.example/cb", "http://127.0.0.1:5/cb?x=1", "http://[::1]:5/", "cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/cb", "https://a.example@evil.example/",
		"https://a.example\\@evil.example", "http://localhost.:1/", "javascript://x/%0aalert(1)", "https://[2001:db8::1]/cb", "https://a.example/?code=1",
	} {
		f.Add(s, "http://127.0.0.1/cb")
	}
	f.Fuzz(func(t *testing.T, raw, other string) {
		r, why := parseRedirect(raw)
		if why != "" {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || u.User != nil || u.Fragment != "" || strings.Contains(raw, "#") {
			t.Fatalf("%q was taken: %v", raw, err)
		}
		if r.kind != redirectCustom && u.Host != r.host {
			t.Fatalf("%q leads to %q and shows %q", raw, u.Host, r.host)
		}
		if u.Scheme == "http" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" && u.Hostname() != "localhost" {
			t.Fatalf("%q leaves the machine in the clear", raw)
		}
		if !fits([]string{raw}, r) {
			t.Fatalf("%q does not fit itself", raw)
		}
		if o, why := parseRedirect(other); why == "" && raw != other && fits([]string{other}, r) {
			v, _ := url.Parse(other)
			if r.kind != redirectLoopback || o.kind != redirectLoopback || u.Hostname() != v.Hostname() || u.RequestURI() != v.RequestURI() && r.path != o.path {
				t.Fatalf("%q fits %q", raw, other)
			}
		}
		done, err := url.Parse(r.with(url.Values{"code": {"c"}, "state": {"&iss=x#"}}))
		if err != nil || done.Query().Get("code") != "c" || done.Query().Get("state") != "&iss=x#" || done.Host != u.Host || done.Fragment != "" || len(done.Query()["iss"]) != 0 {
			t.Fatalf("%q: the answer is lost: %v %v", raw, done, err)
		}
	})
}
