package oauth

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// TestLogin is the way of a client from its registration to a call, a refresh, a restart and
// the end.
func TestLogin(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	got := w.login(client, "scope", "dodo:write dodo:read offline_access profile")
	if got["token_type"] != "Bearer" || got["expires_in"] != 600.0 || got["scope"] != "dodo:read dodo:write offline_access" || got["id_token"] != nil {
		t.Errorf("%v", got)
	}
	c, err := w.Verify(t.Context(), got["access_token"].(string))
	must(t, err)
	if c.Client != client || len(c.Scopes) != 2 || !c.Expires.Equal(w.clock.now().Add(tokenLife)) {
		t.Errorf("%+v", c)
	}
	if g, err := w.store.Grant(t.Context(), c.Grant); err != nil || g.Client != client || g.Resource != w.cfg.Resource {
		t.Errorf("%+v %v", g, err)
	}
	w.restart()
	if !w.holds(got["access_token"]) {
		t.Error("a restart ended a login")
	}
	w.clock.advance(tokenLife)
	if w.holds(got["access_token"]) {
		t.Error("a token outlives its time")
	}
	a := w.refresh(client, got["refresh_token"].(string), "resource", w.cfg.Resource, "scope", "dodo:read offline_access unknown")
	next := a.json(t)
	if a.StatusCode != http.StatusOK || next["scope"] != "dodo:read offline_access" || next["refresh_token"] == got["refresh_token"] || !w.holds(next["access_token"]) {
		t.Fatalf("%d %v", a.StatusCode, next)
	}
	if c, _ := w.Verify(t.Context(), next["access_token"].(string)); len(c.Scopes) != 1 {
		t.Errorf("%+v", c)
	}
	// What was narrowed once is not lost.
	w.clock.advance(time.Minute)
	wide := w.refresh(client, next["refresh_token"].(string)).json(t)
	if wide["scope"] != "dodo:read dodo:write offline_access" {
		t.Errorf("%v", wide)
	}
	if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a.Header)
	}
	if _, err := w.store.RevokeGrant(t.Context(), c.Grant); err != nil {
		t.Fatal(err)
	}
	if w.holds(wide["access_token"]) {
		t.Error("a revoked grant lets in")
	}
	if a := w.refresh(client, wide["refresh_token"].(string)); a.StatusCode != http.StatusBadRequest || a.json(t)["error"] != "invalid_grant" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if clients, err := w.store.Clients(t.Context(), "ws_any"); err != nil || len(clients) != 0 {
		t.Errorf("a login gave access to a workspace: %v %v", clients, err)
	}
}

// TestLoginOfConfidentialClient: by each method, and with the wrong secret by none.
func TestLoginOfConfidentialClient(t *testing.T) {
	w := newWorld(t)
	added, err := AddClient(t.Context(), w.store, AddClientOptions{Name: "ChatGPT", Redirects: []string{"http://127.0.0.1/callback"}})
	must(t, err)
	id, secret := added.Client.ID, added.Secret
	basic := func(id, secret string) []string {
		r, _ := http.NewRequest("GET", "/", nil)
		r.SetBasicAuth(id, secret)
		return []string{"Authorization", r.Header.Get("Authorization")}
	}
	for name, x := range map[string]struct {
		change  []string
		headers []string
		status  int
		code    string
	}{
		"basic":              {[]string{"client_id", ""}, basic(id, secret), 200, ""},
		"basic and id":       {nil, basic(id, secret), 200, ""},
		"post":               {[]string{"client_secret", secret}, nil, 200, ""},
		"none":               {nil, nil, 401, "invalid_client"},
		"wrong by post":      {[]string{"client_secret", secret + "x"}, nil, 401, "invalid_client"},
		"hash by post":       {[]string{"client_secret", hashOf(secret)}, nil, 401, "invalid_client"},
		"wrong by basic":     {nil, basic(id, "x"), 401, "invalid_client"},
		"empty by basic":     {nil, basic(id, ""), 401, "invalid_client"},
		"twice":              {[]string{"client_secret", secret}, basic(id, secret), 400, "invalid_request"},
		"another in basic":   {nil, basic("dodo-client-000000000000", secret), 400, "invalid_request"},
		"not basic":          {nil, []string{"Authorization", "Bearer x"}, 400, "invalid_request"},
		"nobody":             {[]string{"client_id", "dcr-000000000000", "client_secret", secret}, nil, 401, "invalid_client"},
		"without an id":      {[]string{"client_id", "", "client_secret", secret}, nil, 400, "invalid_request"},
		"a very long secret": {[]string{"client_secret", strings.Repeat("x", paramBytes+1)}, nil, 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			code := w.code(id)
			a := w.form("/token", exchange(id, code, x.change...), x.headers...)
			if a.StatusCode != x.status || x.code != "" && a.json(t)["error"] != x.code {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			if challenged := a.Header.Get("WWW-Authenticate") != ""; challenged != (x.status == 401 && x.headers != nil) {
				t.Errorf("%v", a.Header)
			}
			if x.status != 200 {
				if a := w.form("/token", exchange(id, code, "client_secret", secret)); a.StatusCode != 200 {
					t.Errorf("who could not say who it is used the code up: %d %s", a.StatusCode, a.body)
				}
			}
		})
	}
	public := w.registered()
	if a := w.form("/token", exchange(public, w.code(public), "client_secret", "x")); a.StatusCode != 401 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestTokenRefusals is the table of what the token endpoint refuses.
func TestTokenRefusals(t *testing.T) {
	w := newWorld(t)
	client, other := w.registered(), w.registered()
	for name, x := range map[string]struct {
		change []string
		code   string
		keeps  bool // the code is still good afterwards
	}{
		"no grant type":         {[]string{"grant_type", ""}, "invalid_request", true},
		"another grant type":    {[]string{"grant_type", "client_credentials"}, "unsupported_grant_type", true},
		"password":              {[]string{"grant_type", "password"}, "unsupported_grant_type", true},
		"no code":               {[]string{"code", ""}, "invalid_request", true},
		"a guess":               {[]string{"code", random(secretBytes)}, "invalid_grant", true},
		"no verifier":           {[]string{"code_verifier", ""}, "invalid_request", true},
		"a short verifier":      {[]string{"code_verifier", "x"}, "invalid_request", true},
		"the challenge itself":  {[]string{"code_verifier", challengeOf(verifier)}, "invalid_grant", false},
		"another verifier":      {[]string{"code_verifier", strings.Repeat("x", 43)}, "invalid_grant", false},
		"another redirect":      {[]string{"redirect_uri", "http://127.0.0.1:43220/callback"}, "invalid_grant", false},
		"the registered one":    {[]string{"redirect_uri", "http://127.0.0.1/callback"}, "invalid_grant", false},
		"another client":        {[]string{"client_id", other}, "invalid_grant", false},
		"another resource":      {[]string{"resource", "https://other.example/mcp"}, "invalid_target", true},
		"the origin as one":     {[]string{"resource", w.cfg.Issuer}, "invalid_target", true},
		"a resource and query":  {[]string{"resource", w.cfg.Resource + "?x"}, "invalid_target", true},
		"a resource below":      {[]string{"resource", w.cfg.Resource + "/x"}, "invalid_target", true},
		"a resource with user":  {[]string{"resource", strings.Replace(w.cfg.Resource, "://", "://u@", 1)}, "invalid_target", true},
		"a resource, encoded":   {[]string{"resource", strings.Replace(w.cfg.Resource, "/mcp", "/%6dcp", 1)}, "invalid_target", true},
		"no refresh token":      {[]string{"grant_type", "refresh_token"}, "invalid_request", true},
		"a code as refresh":     {[]string{"grant_type", "refresh_token", "refresh_token", "dodo_rt_x"}, "invalid_grant", true},
		"a scope with a quote":  {[]string{"grant_type", "refresh_token", "refresh_token", "x", "scope", "a\"b"}, "invalid_scope", true},
		"a code that is a book": {[]string{"code", strings.Repeat("x", paramBytes+1)}, "invalid_request", true},
	} {
		t.Run(name, func(t *testing.T) {
			code := w.code(client)
			a := w.form("/token", exchange(client, code, x.change...))
			if a.StatusCode != 400 || a.json(t)["error"] != x.code || a.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			if a := w.form("/token", exchange(client, code)); (a.StatusCode == 200) != x.keeps {
				t.Errorf("afterwards: %d %s", a.StatusCode, a.body)
			}
		})
	}
	code := w.code(client)
	for name, x := range map[string]struct{ kind, body string }{
		"JSON":       {"application/json", `{"grant_type":"authorization_code"}`},
		"no kind":    {"", exchange(client, code).Encode()},
		"in a query": {formKind, ""},
		"twice":      {formKind, exchange(client, code).Encode() + "&code=" + code},
		"id twice":   {formKind, exchange(client, code).Encode() + "&client_id=" + other},
		"bad escape": {formKind, exchange(client, code).Encode() + "&x=%zz"},
		"too much":   {formKind, exchange(client, code).Encode() + "&x=" + strings.Repeat("x", bodyBytes)},
		"resources":  {formKind, exchange(client, code).Encode() + strings.Repeat("&resource="+w.cfg.Resource, mostValues+1)},
	} {
		a := w.post(w.browser(), "/token?"+exchange(client, code).Encode(), x.kind, x.body)
		if a.StatusCode != 400 && a.StatusCode != 413 || a.json(t)["error"] != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if a := w.form("/token", exchange(client, code, "redirect_uri", "", "resource", strings.ToUpper(w.cfg.Issuer)+"/mcp/")); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestCodeEnds: a code holds for a minute.
func TestCodeEnds(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	for after, want := range map[time.Duration]int{codeLife - time.Millisecond: 200, codeLife: 400} {
		code := w.code(client)
		w.clock.advance(after)
		if a := w.form("/token", exchange(client, code)); a.StatusCode != want {
			t.Errorf("after %s: %d %s", after, a.StatusCode, a.body)
		}
	}
}

// TestCodeTwice: a code that is shown twice ends the login, and the tokens that it gave.
func TestCodeTwice(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	code := w.code(client)
	got := w.form("/token", exchange(client, code)).json(t)
	w.restart()
	if a := w.form("/token", exchange(client, code)); a.StatusCode != 400 || a.json(t)["error"] != "invalid_grant" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if w.holds(got["access_token"]) {
		t.Error("its access token still holds")
	}
	if a := w.refresh(client, got["refresh_token"].(string)); a.StatusCode != 400 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestRefreshRace: clients refresh from several places at once; all get tokens that hold. A
// late use of the same token ends them all.
func TestRefreshRace(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	got := w.login(client)
	first := got["refresh_token"].(string)
	var wg sync.WaitGroup
	answers := make([]reply, 8)
	for i := range answers {
		wg.Go(func() { answers[i] = w.refresh(client, first) })
	}
	wg.Wait()
	seen := map[any]bool{}
	for _, a := range answers {
		if a.StatusCode != 200 || !w.holds(a.json(t)["access_token"]) {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		seen[a.json(t)["refresh_token"]] = true
	}
	if len(seen) != len(answers) {
		t.Errorf("%d different tokens", len(seen))
	}
	w.clock.advance(state.RefreshGrace + time.Second)
	if a := w.refresh(client, first); a.StatusCode != 400 || a.json(t)["error"] != "invalid_grant" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, a := range answers {
		if w.holds(a.json(t)["access_token"]) {
			t.Error("an access token outlived the theft")
		}
	}
}

// TestRefreshRefusals: another client's token, more than was granted, and a client that
// registered without.
func TestRefreshRefusals(t *testing.T) {
	w := newWorld(t)
	client, other := w.registered(), w.registered()
	token := w.login(client)["refresh_token"].(string)
	for name, x := range map[string]struct {
		client string
		change []string
		code   string
	}{
		"another client":   {other, nil, "invalid_grant"},
		"more":             {client, []string{"scope", "dodo:read dodo:exec"}, "invalid_scope"},
		"another resource": {client, []string{"resource", "https://other.example/mcp"}, "invalid_target"},
	} {
		if a := w.refresh(x.client, token, x.change...); a.StatusCode != 400 || a.json(t)["error"] != x.code {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if a := w.refresh(client, token); a.StatusCode != 200 {
		t.Errorf("what was refused used the token up: %d %s", a.StatusCode, a.body)
	}
	a := w.post(w.browser(), "/register", "application/json", `{"redirect_uris":["http://127.0.0.1/callback"],"token_endpoint_auth_method":"none","grant_types":["authorization_code"]}`)
	once := a.json(t)["client_id"].(string)
	if got := w.login(once); got["refresh_token"] != nil {
		t.Errorf("%v", got)
	}
	if a := w.refresh(once, "dodo_rt_x"); a.json(t)["error"] != "unauthorized_client" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestRevocation: a client ends its own login, by either token, and nobody else's.
func TestRevocation(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	for _, kind := range []string{"access_token", "refresh_token"} {
		got, other := w.login(client), w.registered()
		revoke := func(client string) reply {
			v := exchange(client, "")
			v.Set("token", got[kind].(string))
			return w.form("/token/revocation", v)
		}
		if a := revoke(other); a.StatusCode != 200 || !w.holds(got["access_token"]) {
			t.Errorf("%s: another client ended it: %d", kind, a.StatusCode)
		}
		w.clock.advance(2 * tokenLife) // also one that has ended
		fresh := got["access_token"]
		if kind == "refresh_token" {
			fresh = w.refresh(client, got["refresh_token"].(string)).json(t)["access_token"]
		}
		if a := revoke(client); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", kind, a.StatusCode, a.body)
		}
		if w.holds(fresh) || w.refresh(client, got["refresh_token"].(string)).StatusCode != 400 {
			t.Errorf("%s: it goes on", kind)
		}
	}
	for token, want := range map[string]int{"": 400, "unknown": 200, "dodo_rt_unknown": 200, "a.b.c": 200} {
		v := exchange(client, "")
		v.Set("token", token)
		if a := w.form("/token/revocation", v); a.StatusCode != want {
			t.Errorf("%q: %d %s", token, a.StatusCode, a.body)
		}
	}
	v := exchange("nobody", "")
	v.Set("token", "x")
	if a := w.form("/token/revocation", v); a.StatusCode != 401 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestDeletedClient: its tokens end, the token endpoint says invalid_client, and a login that
// waits comes to nothing.
func TestDeletedClient(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	got := w.login(client)
	b := w.browser()
	page := w.begin(b, w.asking(client))
	_, err := w.Approve(t.Context(), idOf(page))
	must(t, err)
	must(t, w.store.DeleteOAuthClient(t.Context(), client))
	if a := w.finish(b, page); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "deleted") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if w.holds(got["access_token"]) {
		t.Error("its token holds")
	}
	if a := w.refresh(client, got["refresh_token"].(string)); a.StatusCode != 401 || a.json(t)["error"] != "invalid_client" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := w.get(b, "/auth?"+w.asking(client).Encode()); a.StatusCode != 400 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestAnotherIssuer: tokens and logins are for one address of the server.
func TestAnotherIssuer(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	got, code := w.login(client), w.code(client)
	was := w.cfg
	w.cfg.Issuer, w.cfg.Resource = "https://dodo.example", "https://dodo.example/mcp"
	w.restart()
	w.cfg.Issuer = was.Issuer // where requests go
	if w.holds(got["access_token"]) {
		t.Error("a token holds for another issuer")
	}
	for _, a := range []reply{w.refresh(client, got["refresh_token"].(string)), w.form("/token", exchange(client, code))} {
		if a.StatusCode != 400 || a.json(t)["error"] != "invalid_grant" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	w.cfg = was
	w.restart()
	if a := w.refresh(client, got["refresh_token"].(string)); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestScopes: what is granted is what was asked for and is known.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	for asked, want := range map[string]string{
		"":                                  "dodo:read",
		"unknown":                           "dodo:read",
		"offline_access":                    "dodo:read offline_access",
		"dodo:exec":                         "dodo:exec",
		"dodo:everything dodo:write":        "dodo:write",
		"DODO:EXEC":                         "dodo:read",
		"openid dodo:exec dodo:read  email": "dodo:read dodo:exec openid",
	} {
		got := w.login(client, "scope", asked)
		if got["scope"] != want || got["refresh_token"] == nil || (got["id_token"] != nil) != strings.Contains(want, "openid") {
			t.Errorf("%q: %v", asked, got)
		}
		c, err := w.Verify(t.Context(), got["access_token"].(string))
		if err != nil || len(c.Scopes) != len(dodoScopes(want)) {
			t.Errorf("%q: %+v %v", asked, c, err)
		}
	}
	if c := (Caller{Grant: "g", Client: "c", Scopes: contract.NewScopes(contract.ScopeRead), Expires: time.Unix(5, 0)}); c.String() != "oauth g 5 dodo:read c" {
		t.Error(c)
	}
}
