package oauth

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

func contractJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return string(raw)
}

// TestDiscovery is the table of what clients look for, and what they find.
func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	for path, kind := range map[string]string{
		"/.well-known/oauth-protected-resource":        "resource",
		"/.well-known/oauth-protected-resource/mcp":    "resource",
		"/mcp/.well-known/oauth-protected-resource":    "resource",
		"/.well-known/oauth-authorization-server":      "server",
		"/.well-known/oauth-authorization-server/mcp":  "server",
		"/mcp/.well-known/oauth-authorization-server":  "server",
		"/.well-known/openid-configuration":            "server",
		"/.well-known/openid-configuration/mcp":        "server",
		"/mcp/.well-known/openid-configuration":        "server",
		"/.well-known/oauth-authorization-server/auth": "",
		"/.well-known/oauth-protected-resource/":       "",
		"/.well-known/oauth-protected-resource/mcp/x":  "",
		"/.well-known/jwks.json":                       "",
		"/auth/.well-known/openid-configuration":       "",
		"/userinfo":                                    "",
		"/introspect":                                  "",
		"/interaction/":                                "",
		"/interaction":                                 "",
	} {
		a := w.get(w.browser(), path)
		if kind == "" {
			if a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d", path, a.StatusCode)
			}
			continue
		}
		d := a.json(t)
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/json" || a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v", path, a.StatusCode, a.Header)
		}
		if kind == "resource" && (d["resource"] != w.cfg.Resource || contractJSON(t, d["authorization_servers"]) != `["`+w.cfg.Issuer+`"]` ||
			contractJSON(t, d["scopes_supported"]) != `["dodo:read","dodo:write","dodo:exec"]`) {
			t.Errorf("%s: %v", path, d)
		}
		if kind == "server" && d["issuer"] != w.cfg.Issuer {
			t.Errorf("%s: %v", path, d)
		}
	}
	d := w.get(w.browser(), "/.well-known/oauth-authorization-server").json(t)
	for name, want := range map[string]string{
		"authorization_endpoint": w.cfg.Issuer + "/auth", "token_endpoint": w.cfg.Issuer + "/token", "revocation_endpoint": w.cfg.Issuer + "/token/revocation",
		"jwks_uri": w.cfg.Issuer + "/jwks", "registration_endpoint": w.cfg.Issuer + "/register",
	} {
		if d[name] != want {
			t.Errorf("%s: %v", name, d[name])
		}
	}
	for name, want := range map[string]string{
		"code_challenge_methods_supported": `["S256"]`, "response_types_supported": `["code"]`, "grant_types_supported": `["authorization_code","refresh_token"]`,
		"token_endpoint_auth_methods_supported": `["none","client_secret_post","client_secret_basic"]`, "authorization_response_iss_parameter_supported": "true",
		"scopes_supported": `["dodo:read","dodo:write","dodo:exec","offline_access"]`, "client_id_metadata_document_supported": "null",
	} {
		if got := contractJSON(t, d[name]); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	off := newWorld(t, func(c *Config) { c.Registration, c.Fetch = false, http.DefaultClient })
	d = off.get(off.browser(), "/.well-known/openid-configuration").json(t)
	if d["registration_endpoint"] != nil || d["client_id_metadata_document_supported"] != true || slices.Contains(off.Paths(), "/register") {
		t.Errorf("%v", d)
	}
	if a := off.post(off.browser(), "/register", "application/json", "{}"); a.StatusCode != 404 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestMethodsAndOrigins: each path answers its methods, and pages of other sites only where
// no cookie is looked at.
func TestMethodsAndOrigins(t *testing.T) {
	w := newWorld(t)
	for path, x := range map[string]struct {
		allow string
		open  bool
	}{
		"/jwks": {"GET, HEAD", true}, "/token": {"POST", true}, "/token/revocation": {"POST", true}, "/register": {"POST", true}, "/.well-known/oauth-protected-resource/mcp": {"GET, HEAD", true},
		"/auth": {"GET, POST", false}, "/authorize": {"GET, POST", false}, "/interaction/x": {"GET, HEAD", false}, "/interaction/x/status": {"GET, HEAD", false},
		"/interaction/x/complete": {"POST", false},
	} {
		for _, method := range []string{"DELETE", "PUT", "OPTIONS"} {
			r, err := http.NewRequest(method, w.cfg.Issuer+path, nil)
			must(t, err)
			r.Header.Set("Origin", "https://inspector.example")
			r.Header.Set("Access-Control-Request-Method", "POST")
			a := w.do(w.browser(), r)
			if method == "OPTIONS" && x.open {
				if a.StatusCode != 204 || a.Header.Get("Access-Control-Allow-Methods") != x.allow || a.Header.Get("Access-Control-Allow-Credentials") != "" {
					t.Errorf("%s %s: %d %v", method, path, a.StatusCode, a.Header)
				}
			} else if a.StatusCode != 405 || a.Header.Get("Allow") != x.allow {
				t.Errorf("%s %s: %d %v", method, path, a.StatusCode, a.Header)
			}
			if (a.Header.Get("Access-Control-Allow-Origin") == "*") != x.open {
				t.Errorf("%s %s: %v", method, path, a.Header)
			}
		}
	}
	for _, path := range w.Paths() {
		if !strings.HasPrefix(path, "/") {
			t.Errorf("%q is no path", path)
		}
	}
}

// TestIssuer: what the address of the server may be.
func TestIssuer(t *testing.T) {
	w := newWorld(t)
	for issuer, good := range map[string]bool{
		"https://dodo.example": true, "https://dodo.example:8443": true, "http://localhost:21730": true, "http://[::1]:21730": true, "http://127.0.0.1": true,
		"": false, "dodo.example": false, "https://dodo.example/": false, "https://dodo.example/x": false, "https://dodo.example?x": false, "https://dodo.example#": false,
		"https://user@dodo.example": false, "http://dodo.example": false, "http://0.0.0.0:1": false, "https://DODO.example": false, "https://dodo.example:443": false,
		"http://127.0.0.1:80": false, "ftp://dodo.example": false, "cursor://dodo": false, "https://": false,
	} {
		c := w.cfg
		c.Issuer, c.Resource = issuer, issuer+"/mcp"
		s, err := New(t.Context(), c)
		if (err == nil) != good || err != nil && !errors.Is(err, contract.InvalidInput) {
			t.Errorf("%q: %v", issuer, err)
		}
		if err == nil {
			s.Close()
		}
	}
	c := w.cfg
	c.Resource = c.Issuer + "/other"
	if _, err := New(t.Context(), c); !errors.Is(err, contract.InvalidInput) {
		t.Error(err)
	}
}

// TestRegister: what registers itself, and what is refused.
func TestRegister(t *testing.T) {
	w := newWorld(t)
	register := func(body string) reply {
		return w.post(w.browser(), "/register", "application/json; charset=utf-8", body)
	}
	a := register(`{"client_name":"Claude","redirect_uris":["https://claude.ai/api/mcp/auth_callback","https://claude.com/api/mcp/auth_callback"],"grant_types":["authorization_code","refresh_token","x"],
		"response_types":["code"],"token_endpoint_auth_method":"client_secret_post","scope":"x","logo_uri":"javascript:alert(1)","application_type":"native","unknown":{"a":[1]}}`)
	d := a.json(t)
	if a.StatusCode != 201 || a.Header.Get("Cache-Control") != "no-store" || len(d["client_secret"].(string)) < 43 || d["client_secret_expires_at"] != 0.0 || d["client_name"] != "Claude" ||
		contractJSON(t, d["grant_types"]) != `["authorization_code","refresh_token"]` || d["logo_uri"] != nil || d["token_endpoint_auth_method"] != "client_secret_post" || d["application_type"] != "native" {
		t.Errorf("%d %v", a.StatusCode, d)
	}
	c, err := w.store.OAuthClient(t.Context(), d["client_id"].(string))
	if err != nil || c.Kind != state.ClientDynamic || !c.Approved.IsZero() || c.Secret != hashOf(d["client_secret"].(string)) {
		t.Errorf("%+v %v", c, err)
	}
	if d := register(`{"redirect_uris":["http://127.0.0.1/"]}`).json(t); d["token_endpoint_auth_method"] != "client_secret_basic" || d["client_secret"] == nil {
		t.Errorf("%v", d)
	}
	for body, code := range map[string]string{
		``:                      "invalid_client_metadata",
		`[]`:                    "invalid_client_metadata",
		`{"redirect_uris":"x"}`: "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"redirect_uris":["https://b.example/"]}`: "invalid_client_metadata",
		`{}`:                   "invalid_redirect_uri",
		`{"redirect_uris":[]}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/","javascript:alert(1)"]}`:                                         "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/*"]}`:                                                              "invalid_redirect_uri",
		`{"redirect_uris":["http://a.example/"]}`:                                                                "invalid_redirect_uri",
		`{"redirect_uris":[` + strings.Repeat(`"https://a.example/",`, mostRedirects) + `"https://b.example/"]}`: "invalid_redirect_uri",
		`{"redirect_uris":["https://a.example/"],"token_endpoint_auth_method":"private_key_jwt"}`:                "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"grant_types":["implicit"]}`:                                    "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"response_types":["token"]}`:                                    "invalid_client_metadata",
		`{"redirect_uris":["https://a.example/"],"application_type":"robot"}`:                                    "invalid_client_metadata",
		`{"x":"` + strings.Repeat("x", bodyBytes) + `"}`:                                                         "invalid_client_metadata",
		strings.Repeat(`{"a":`, 20000):                                                                           "invalid_client_metadata",
	} {
		if a := register(body); a.StatusCode != 400 && a.StatusCode != 413 || a.json(t)["error"] != code {
			t.Errorf("%.60s: %d %s", body, a.StatusCode, a.body)
		}
	}
	if a := w.post(w.browser(), "/register", "text/plain", `{"redirect_uris":["http://127.0.0.1/"]}`); a.StatusCode != 400 {
		t.Errorf("%d", a.StatusCode)
	}
	for range state.MostWaiting - 2 {
		w.registered()
	}
	a = register(`{"redirect_uris":["http://127.0.0.1/"]}`)
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" || a.json(t)["error"] != "temporarily_unavailable" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	w.clock.advance(state.WaitingLife)
	w.registered()
}
