package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// later lets time pass for the programs of an installation that are built with a clock for
// tests: it is that far ahead of the machine's.
func (m *machine) later(d time.Duration) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.Env()["DODO_CONFIG_DIR"], "probe-clock"), []byte(d.String()), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// clockedSite is a server on a workspace whose clock tests set.
func clockedSite(t *testing.T) (*machine, *site) {
	t.Helper()
	m := newMachine(t)
	return m, m.startWith(clocked.Path(t), "--root", m.workspace())
}

// port is the one it listens on.
func (s *site) port() string { return s.base[strings.LastIndex(s.base, ":")+1:] }

// refused checks that a token is answered with the way to a new one, and with nothing else.
func (s *site) refused(what, token, why string) {
	s.m.t.Helper()
	r := s.rpc(token, "tools/list", "")
	challenge := r.header.Get("WWW-Authenticate")
	if r.status != 401 || !strings.HasPrefix(challenge, `Bearer resource_metadata="`+s.base+`/.well-known/oauth-protected-resource/mcp"`) ||
		!strings.Contains(challenge, `error="invalid_token"`) || !strings.Contains(challenge, why) || strings.Contains(string(r.body), s.m.Path("")) {
		s.m.t.Errorf("%s: %d %q %s", what, r.status, challenge, r.body)
	}
}

// holds checks that a token is good.
func (s *site) holds(what, token string) {
	s.m.t.Helper()
	if r := s.rpc(token, "tools/list", ""); r.status != 200 {
		s.m.t.Errorf("%s: %d %s", what, r.status, r.body)
	}
}

// refreshed is a refresh that must go well.
func (s *site) refreshed(t tokens) tokens {
	s.m.t.Helper()
	next := tokens{Client: t.Client}
	if r := s.refresh(t); r.status != 200 || json.Unmarshal(r.body, &next) != nil || next.Access == "" || next.Refresh == t.Refresh {
		s.m.t.Fatalf("refresh: %d %s", r.status, r.body)
	}
	return next
}

// oauthError checks an error of the token endpoint.
func oauthError(t *testing.T, what string, r answer, status int, code string) {
	t.Helper()
	var e struct{ Error string }
	if json.Unmarshal(r.body, &e) != nil || r.status != status || e.Error != code || r.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %d %s %v, want %d %s", what, r.status, r.body, r.header, status, code)
	}
}

// logins are all that there ever were, of the owner's list.
func (m *machine) logins() []loginOut {
	m.t.Helper()
	var out loginsOut
	m.ok(&out, "auth", "list", "--all", "--json")
	return out.Grants
}

// grantOf is the login that a token is of.
func grantOf(t *testing.T, token string) string {
	t.Helper()
	return claimsOf(t, token)["dodo_grant"].(string)
}

func claimsOf(t *testing.T, token string) (c map[string]any) {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || json.Unmarshal(raw, &c) != nil {
		t.Fatalf("%v %s", err, raw)
	}
	return c
}

// forged is a token with other claims, signed with the installation's own key.
func (m *machine) forged(token string, changes map[string]any) string {
	m.t.Helper()
	var file struct {
		Keys []struct {
			D string `json:"d"`
		} `json:"keys"`
	}
	data, err := os.ReadFile(filepath.Join(m.Env()["DODO_CONFIG_DIR"], "keys", "signing.json"))
	if err != nil || json.Unmarshal(data, &file) != nil || len(file.Keys) != 1 {
		m.t.Fatalf("%v %s", err, data)
	}
	d, err := base64.RawURLEncoding.DecodeString(file.Keys[0].D)
	if err != nil {
		m.t.Fatal(err)
	}
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), d)
	if err != nil {
		m.t.Fatal(err)
	}
	c := claimsOf(m.t.(*testing.T), token)
	maps.Copy(c, changes)
	body, err := json.Marshal(c)
	if err != nil {
		m.t.Fatal(err)
	}
	in := strings.Split(token, ".")[0] + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(in))
	r, x, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		m.t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	x.FillBytes(signature[32:])
	return in + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestRefusalsOverHTTP: each refusal has its status, and says how to go on where there is a
// way. Who comes is looked at before anything else of a request but its names.
func TestRefusalsOverHTTP(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	s := m.start("--root", dir)
	tok := s.login("dodo:read")
	good := "Bearer " + tok.Access
	big := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 24<<20) + `"}}`
	deep := `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}`
	type header = map[string]string
	metadata := `Bearer resource_metadata="` + s.base + `/.well-known/oauth-protected-resource/mcp", scope="dodo:read dodo:write dodo:exec"`
	for _, c := range []struct {
		what, method, path string
		header             header
		body               string
		status             int
		challenge          string // its beginning; "none": there must be none
		says               string // in the body
	}{
		{"GET without a token", "GET", "/mcp", nil, "", 401, metadata, "unauthorized"},
		{"HEAD without a token", "HEAD", "/mcp", nil, "", 401, metadata, ""},
		{"POST without a token", "POST", "/mcp", nil, "{}", 401, metadata, "unauthorized"},
		{"DELETE without a token", "DELETE", "/mcp", nil, "", 401, metadata, "unauthorized"},
		{"with a slash", "POST", "/mcp/", nil, "{}", 401, metadata, "unauthorized"},
		{"much without a token", "POST", "/mcp", nil, big, 401, metadata, "unauthorized"},
		{"nonsense without a token", "POST", "/mcp", nil, "{", 401, metadata, "unauthorized"},
		{"a token that is none", "POST", "/mcp", header{"Authorization": "Bearer x"}, "{}", 401, metadata + `, error="invalid_token"`, "invalid_token"},
		{"a password", "GET", "/mcp", header{"Authorization": "Basic eDp5"}, "", 401, metadata + `, error="invalid_token"`, "invalid_token"},
		{"the refresh token", "GET", "/mcp", header{"Authorization": "Bearer " + tok.Refresh}, "", 401, metadata + `, error="invalid_token"`, "invalid_token"},
		{"a token in the address", "POST", "/mcp?access_token=" + tok.Access, nil, "{}", 401, metadata, "unauthorized"},
		{"another name", "POST", "/mcp", header{"Authorization": good, "Host": "evil.example"}, "{}", 403, "none", "forbidden"},
		{"another name, without a token", "GET", "/healthz", header{"Host": "evil.example:" + s.port()}, "", 403, "none", "forbidden"},
		{"another page", "POST", "/mcp", header{"Authorization": good, "Origin": "https://evil.example"}, "{}", 403, "none", "forbidden"},
		{"a page without an origin", "POST", "/mcp", header{"Authorization": good, "Origin": "null"}, "{}", 403, "none", "forbidden"},
		{"too much", "POST", "/mcp", header{"Authorization": good, "Content-Type": "application/json"}, big, 413, "none", "payload_too_large"},
		{"nonsense", "POST", "/mcp", header{"Authorization": good, "Content-Type": "application/json"}, "{", 400, "none", "JSON"},
		{"too deep", "POST", "/mcp", header{"Authorization": good, "Content-Type": "application/json"}, deep, 400, "none", ""},
		{"a session that is not there", "POST", "/mcp", header{"Authorization": good, "Mcp-Session-Id": "x", "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 404, "none", "session"},
		{"GET in the era without", "GET", "/mcp", header{"Authorization": good, "MCP-Protocol-Version": "2026-07-28", "Accept": "text/event-stream"}, "", 405, "none", ""},
		{"DELETE in the era without", "DELETE", "/mcp", header{"Authorization": good, "MCP-Protocol-Version": "2026-07-28"}, "", 405, "none", ""},
		{"nothing", "GET", "/", nil, "", 404, "none", "not_found"},
		{"below", "POST", "/mcp/x", header{"Authorization": good}, "{}", 404, "none", "not_found"},
		{"another document", "GET", "/.well-known/oauth-protected-resource/other", nil, "", 404, "none", "not_found"},
	} {
		r := s.do(http.DefaultClient, c.method, c.path, c.header, c.body)
		challenge := r.header.Get("WWW-Authenticate")
		if r.status != c.status || !strings.Contains(string(r.body), c.says) ||
			c.challenge == "none" && challenge != "" || c.challenge != "none" && !strings.HasPrefix(challenge, c.challenge) {
			t.Errorf("%s: %d %q %.300s", c.what, r.status, challenge, r.body)
		}
		if strings.Contains(string(r.body), dir) || strings.Contains(string(r.body), tok.Access) {
			t.Errorf("%s: it tells too much: %s", c.what, r.body)
		}
	}
	// What a login does not allow is an answer, and no reason to log in again.
	r := s.rpc(tok.Access, "tools/call", `"name":"dodo_write","arguments":{"operation":"write_file","args":{"path":"x","content":"","expectedHash":null}}`)
	if r.status != 200 || r.header.Get("WWW-Authenticate") != "" || !strings.Contains(string(r.body), "FORBIDDEN") {
		t.Errorf("%d %v %s", r.status, r.header, r.body)
	}
}

// TestFloods: who comes too often waits, and keeps out neither the owner nor anybody else.
func TestFloods(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	one, other := s.login("dodo:read"), s.login("dodo:read")
	// many sends requests and gives the first answer that is a refusal for coming too often.
	many := func(n int, send func() answer) *answer {
		for range n {
			if r := send(); r.status == 429 {
				return &r
			}
		}
		return nil
	}
	check := func(what string, r *answer) {
		t.Helper()
		if r == nil {
			t.Errorf("%s: it is never too much", what)
		} else if wait, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || wait < 1 || !strings.Contains(string(r.body), "too_many_requests") {
			t.Errorf("%s: %v %s", what, r.header, r.body)
		}
	}
	check("calls of a login", many(400, func() answer { return s.rpc(one.Access, "server/discover", "") }))
	s.holds("another login", other.Access)
	far := map[string]string{"X-Forwarded-For": "192.0.2.1"}
	check("logins from elsewhere", many(400, func() answer { return s.do(browser(), "GET", "/auth?client_id=x", far, "") }))
	check("the same from other addresses", many(1, func() answer {
		return s.do(browser(), "GET", "/auth?client_id=x", map[string]string{"X-Forwarded-For": "192.0.2.2"}, "")
	}))
	if r := s.do(http.DefaultClient, "GET", "/healthz", nil, ""); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.login("dodo:read") // at this machine
}

// TestTokensEnd: codes, requests, access tokens and logins end in their time.
func TestTokensEnd(t *testing.T) {
	m, s := clockedSite(t)
	client := s.register()
	// An answer that the owner gives too late, and a code that is taken up too late.
	b, page, _ := s.ask(client, "dodo:read")
	s.do(b, "GET", page, nil, "")
	_, id, _ := strings.Cut(page, "/interaction/")
	m.later(5*time.Minute + time.Second)
	if r := m.dodo("auth", "approve", id); r.status != 1 {
		t.Errorf("%d %s %s", r.status, r.stdout, r.stderr)
	}
	m.later(6 * time.Minute)
	b, page, verifier := s.ask(client, "dodo:read")
	s.do(b, "GET", page, nil, "")
	_, id, _ = strings.Cut(page, "/interaction/")
	m.ok(nil, "auth", "approve", id)
	code := s.code(b, page)
	m.later(7*time.Minute + 5*time.Second)
	oauthError(t, "a late code", s.token(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "client_id": {client}, "code_verifier": {verifier}}), 400, "invalid_grant")

	base := 20 * time.Minute
	m.later(base)
	tok := s.login("dodo:read offline_access")
	if tok.Expires != 600 {
		t.Errorf("%d seconds", tok.Expires)
	}
	m.later(base + 9*time.Minute)
	s.holds("after nine minutes", tok.Access)
	m.later(base + 10*time.Minute)
	s.refused("after ten minutes", tok.Access, "expired")
	next := s.refreshed(tok)
	s.holds("refreshed", next.Access)
	// A login lasts 30 days, however often it is refreshed.
	m.later(base + 29*24*time.Hour)
	last := s.refreshed(next)
	m.later(base + 30*24*time.Hour)
	s.refused("after thirty days", last.Access, "")
	oauthError(t, "after thirty days", s.refresh(last), 400, "invalid_grant")
}

// TestWrongAudience: a token for something else is nobody's, and none is given.
func TestWrongAudience(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	tok := s.login("dodo:read")
	s.holds("as it was signed", m.forged(tok.Access, nil))
	for what, aud := range map[string]any{"elsewhere": "https://other.example/mcp", "the issuer": s.base, "with a slash": s.base + "/mcp/", "a list": []string{s.base + "/mcp"}, "nothing": nil} {
		s.refused("audience "+what, m.forged(tok.Access, map[string]any{"aud": aud}), "")
	}
	s.refused("more time", m.forged(tok.Access, map[string]any{"exp": 1}), "expired")
	s.refused("another issuer", m.forged(tok.Access, map[string]any{"iss": "https://other.example"}), "")
	// Another server of the same installation has the same keys and another name.
	twin := m.start("--root", m.workspace())
	twin.refused("of another server", tok.Access, "")
	oauthError(t, "another resource at the token", s.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.Refresh}, "client_id": {tok.Client}, "resource": {twin.base + "/mcp"}}), 400, "invalid_target")
	q := url.Values{"response_type": {"code"}, "client_id": {tok.Client}, "redirect_uri": {callback}, "state": {"st"}, "code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}, "resource": {"https://other.example/mcp"}}
	r := s.do(browser(), "GET", "/auth?"+q.Encode(), nil, "")
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil || !strings.HasPrefix(to.String(), callback) || to.Query().Get("error") != "invalid_target" || to.Query().Get("iss") != s.base || to.Query().Get("state") != "st" {
		t.Errorf("%d %v %s", r.status, to, r.body)
	}
	s.holds("afterwards", tok.Access)
}

// TestCodeReuse: whoever shows a code again ends the login that it gave.
func TestCodeReuse(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	client := s.register()
	b, page, verifier := s.ask(client, "dodo:read offline_access")
	s.do(b, "GET", page, nil, "")
	_, id, _ := strings.Cut(page, "/interaction/")
	m.ok(nil, "auth", "approve", id)
	code := s.code(b, page)
	tok := s.redeem(client, code, verifier)
	s.holds("the first time", tok.Access)
	oauthError(t, "again", s.token(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "client_id": {client}, "code_verifier": {verifier}}), 400, "invalid_grant")
	s.refused("what it gave", tok.Access, "")
	oauthError(t, "what it gave", s.refresh(tok), 400, "invalid_grant")
	if l := m.logins(); len(l) != 1 || l[0].Live || l[0].Reason == "" {
		t.Errorf("%+v", l)
	}
}

// TestRefreshTogether: a client that refreshes from several places at once goes on in all of
// them; an old refresh token that comes back later ends the login.
func TestRefreshTogether(t *testing.T) {
	m, s := clockedSite(t)
	tok := s.login("dodo:read offline_access")
	var all sync.WaitGroup
	got := make([]tokens, 8)
	for i := range got {
		all.Go(func() {
			q := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tok.Refresh}, "client_id": {tok.Client}}
			r, err := http.PostForm(s.base+"/token", q)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			body, _ := io.ReadAll(r.Body)
			if r.StatusCode != 200 || json.Unmarshal(body, &got[i]) != nil {
				t.Errorf("%d %s", r.StatusCode, body)
			}
			got[i].Client = tok.Client
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	seen := map[string]bool{tok.Refresh: true}
	for _, g := range got {
		if seen[g.Refresh] {
			t.Error("a refresh token was given twice")
		}
		seen[g.Refresh] = true
		s.holds("one of them", g.Access)
	}
	s.holds("the one before", tok.Access)
	next := s.refreshed(got[0])
	m.later(31 * time.Second)
	s.holds("before the reuse", next.Access)
	oauthError(t, "late", s.refresh(tok), 400, "invalid_grant")
	for _, g := range append(got, tok, next) {
		s.refused("after the reuse", g.Access, "")
	}
	oauthError(t, "the newest", s.refresh(next), 400, "invalid_grant")
	if l := m.logins(); len(l) != 1 || l[0].Live || l[0].Reason == "" {
		t.Errorf("%+v", l)
	}
}

// TestDeletedClient: a client that the owner removed is nobody, wherever it asks.
func TestDeletedClient(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	tok, stays := s.login("dodo:read offline_access"), s.login("dodo:read")
	m.ok(nil, "auth", "remove-client", tok.Client, "--yes")
	s.refused("its token", tok.Access, "")
	oauthError(t, "its refresh", s.refresh(tok), 401, "invalid_client")
	q := url.Values{"response_type": {"code"}, "client_id": {tok.Client}, "redirect_uri": {callback}, "code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"}}
	if r := s.do(browser(), "GET", "/auth?"+q.Encode(), nil, ""); r.status != 400 || r.header.Get("Location") != "" {
		t.Errorf("%d %v", r.status, r.header)
	}
	s.holds("another client", stays.Access)
}

// TestRevokedLogin: the owner and the client can each end a login, at once.
func TestRevokedLogin(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	byOwner, byClient, stays := s.login("dodo:read offline_access"), s.login("dodo:read offline_access"), s.login("dodo:read")
	m.ok(nil, "auth", "revoke", grantOf(t, byOwner.Access))
	if r := s.post("/token/revocation", "application/x-www-form-urlencoded", url.Values{"token": {byClient.Refresh}, "client_id": {byClient.Client}}.Encode()); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, tok := range []tokens{byOwner, byClient} {
		s.refused("revoked", tok.Access, "")
		oauthError(t, "revoked", s.refresh(tok), 400, "invalid_grant")
	}
	s.holds("another login", stays.Access)
	if r := m.dodo("auth", "revoke", "grant_none"); r.status != 1 {
		t.Errorf("%d %s", r.status, r.stderr)
	}
}

// TestClockAhead: a clock that was 90 seconds ahead and was set locks nobody out.
func TestClockAhead(t *testing.T) {
	m, s := clockedSite(t)
	m.later(90 * time.Second)
	tok := s.login("dodo:read offline_access")
	m.later(0)
	s.holds("a token of the future", tok.Access)
	s.holds("a refreshed one", s.refreshed(tok).Access)
	m.later(90*time.Second + 10*time.Minute)
	s.refused("after its time", tok.Access, "expired")
}

// TestRestart: what clients hold outlives a restart; a session does not, and its client is
// told so in the way that makes it open another.
func TestRestart(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	tok := s.login("dodo:read offline_access")
	x := s.legacy(tok.Access)
	if e := x.call("project_overview", `{}`); !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	first := s.refreshed(tok)
	m.ok(nil, "auth", "rotate-key")
	port := s.port()
	m.ok(nil, "stop")
	<-s.gone
	s = m.start("--port", port)
	s.holds("signed before the new key", tok.Access)
	s.holds("refreshed", first.Access)
	s.holds("the same refresh, for the answer may be lost", s.refreshed(tok).Access)
	s.holds("the next", s.refreshed(first).Access)
	x.site = s
	if r := x.send("tools/list", `{}`); r.status != 404 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if e := s.legacy(tok.Access).call("project_overview", `{}`); !e.OK {
		t.Errorf("%+v", e.Error)
	}
}

// A held is a session of the era that has them.
type held struct {
	*site
	token, id string
}

func (s *site) legacy(token string) *held {
	s.m.t.Helper()
	x := &held{site: s, token: token}
	r := x.send("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	if x.id = r.header.Get("Mcp-Session-Id"); r.status != 200 || x.id == "" {
		s.m.t.Fatalf("%d %s", r.status, r.body)
	}
	return x
}

func (x *held) send(method, params string) answer {
	x.m.t.Helper()
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + x.token}
	if x.id != "" {
		header["Mcp-Session-Id"], header["MCP-Protocol-Version"] = x.id, "2025-11-25"
	}
	return x.do(http.DefaultClient, "POST", "/mcp", header, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
}

func (x *held) call(tool, args string) envelope {
	x.m.t.Helper()
	var r struct {
		Content envelope `json:"structuredContent"`
	}
	x.send("tools/call", `{"name":"`+tool+`","arguments":`+args+`}`).result(x.m.t, &r)
	return r.Content
}

// inside is an operation behind a gateway, in a workspace as its overview showed it.
func inside(over envelope, op, args string) string {
	return fmt.Sprintf(`{"workspaceId":%q,"workspaceEpoch":%q,"operation":%q,"args":%s}`, over.WorkspaceID, over.WorkspaceEpoch, op, args)
}

// code is the error of an answer; empty when there is none.
func (e envelope) code() string {
	if e.Error == nil {
		return ""
	}
	return e.Error.Code
}

// TestScopesAreLive: what a session may do is what the owner says at each of its calls.
func TestScopesAreLive(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "trust", "--mode", "edit", "--root", dir)
	s := m.start("--root", dir)
	tok := s.login("dodo:read dodo:write")
	x := s.legacy(tok.Access)
	write := func(over envelope, name string) string {
		return x.call("dodo_write", inside(over, "write_file", `{"path":"`+name+`","content":"x","expectedHash":null}`)).code()
	}
	if got := x.call("project_overview", `{}`).code(); got != "WORKSPACE_ACCESS_REQUIRED" {
		t.Errorf("a login gives access to a workspace: %q", got)
	}
	m.ok(nil, "access", "set", tok.Client, "--scopes", "read,write", "--root", dir)
	over := x.call("project_overview", `{}`)
	if got := write(over, "one"); got != "" {
		t.Errorf("granted: %q", got)
	}
	m.ok(nil, "access", "set", tok.Client, "--scopes", "read", "--root", dir)
	if got := write(over, "two"); got != "FORBIDDEN" {
		t.Errorf("granted less: %q", got)
	}
	if got := x.call("project_overview", `{}`).code(); got != "" {
		t.Errorf("reading: %q", got)
	}
	m.ok(nil, "access", "set", tok.Client, "--scopes", "read,write,exec", "--root", dir)
	if got := x.call("dodo_exec", inside(over, "run_command", `{"command":"true"}`)).code(); got != "FORBIDDEN" {
		t.Errorf("more than the token has: %q", got)
	}
	m.ok(nil, "access", "remove", tok.Client, "--root", dir)
	if got := write(over, "three"); got != "WORKSPACE_ACCESS_REQUIRED" {
		t.Errorf("removed: %q", got)
	}
	m.ok(nil, "access-mode", "personal")
	if got := write(over, "four"); got != "" {
		t.Errorf("personal mode: %q", got)
	}
	m.ok(nil, "auth", "revoke", grantOf(t, tok.Access))
	if r := x.send("tools/list", `{}`); r.status != 401 {
		t.Errorf("%d %s", r.status, r.body)
	}
	for name, want := range map[string]bool{"one": true, "two": false, "three": false, "four": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScopesAfterAWait: a call that waited for its turn is held against what the owner says
// when its turn comes.
func TestScopesAfterAWait(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "trust", "--mode", "edit", "--root", dir)
	s := m.start("--root", dir)
	first, revoked, narrowed := s.login("dodo:read dodo:write"), s.login("dodo:read dodo:write"), s.login("dodo:read dodo:write")
	for _, tok := range []tokens{first, revoked, narrowed} {
		m.ok(nil, "access", "set", tok.Client, "--scopes", "read,write", "--root", dir)
	}
	over := s.call(first.Access, "project_overview", `{}`)
	// Another process changes files: the first call has the turn, and waits for that.
	locks := filepath.Join(m.Env()["DODO_CONFIG_DIR"], "turns")
	if e := s.call(first.Access, "dodo_write", inside(over, "write_file", `{"path":"before","content":"x","expectedHash":null}`)); !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	lock, err := os.OpenFile(filepath.Join(locks, over.WorkspaceID+".lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	got := make([]envelope, 3)
	var all sync.WaitGroup
	for i, tok := range []tokens{first, revoked, narrowed} {
		all.Go(func() {
			got[i] = s.call(tok.Access, "dodo_write", inside(over, "write_file", fmt.Sprintf(`{"path":"%d","content":"x","expectedHash":null}`, i)))
		})
		time.Sleep(200 * time.Millisecond) // so that they come in this order
	}
	m.ok(nil, "auth", "revoke", grantOf(t, revoked.Access))
	m.ok(nil, "access", "set", narrowed.Client, "--scopes", "read", "--root", dir)
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for i, want := range []string{"", "AUTH_REQUIRED", "FORBIDDEN"} {
		if got[i].code() != want {
			t.Errorf("call %d: %+v", i, got[i].Error)
		}
		if _, err := os.Lstat(filepath.Join(dir, strconv.Itoa(i))); (err == nil) != (want == "") {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// TestSchedulesTickHere: what remote clients proposed and the owner approved runs in this
// server when its minute comes, unless the login that proposed it was ended.
func TestSchedulesTickHere(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "trust", "--mode", "trusted", "--root", dir, "--yes")
	s := m.startWith(clocked.Path(t), "--root", dir)
	stays, revoked := s.login("dodo:read dodo:exec"), s.login("dodo:read dodo:exec")
	over := s.call(stays.Access, "project_overview", `{}`)
	for file, tok := range map[string]tokens{"stays": stays, "revoked": revoked} {
		e := s.call(tok.Access, "dodo_schedule", inside(over, "schedule_propose",
			fmt.Sprintf(`{"name":%q,"command":"echo ran >> %s","cron":"* * * * *","expiresAt":%d}`, file, file, time.Now().Add(72*time.Hour).UnixMilli())))
		if !e.OK {
			t.Fatalf("%+v", e.Error)
		}
		m.ok(nil, "schedule", "approve", e.text("id"), "--digest", e.text("digest"))
	}
	m.ok(nil, "auth", "revoke", grantOf(t, revoked.Access))
	now := time.Now()
	m.later(now.Truncate(time.Minute).Add(time.Minute + 57*time.Second).Sub(now)) // the minute after the one they were approved in is near its end
	var runs struct {
		Runs []struct{ Status, Reason string }
	}
	for end := time.Now().Add(45 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		if data, err := os.ReadFile(filepath.Join(dir, "stays")); err == nil && len(data) > 0 {
			break
		}
		if time.Now().After(end) {
			m.ok(&runs, "schedule", "history", "--root", dir, "--json")
			t.Fatalf("it did not run: %+v\n%s", runs, s.err)
		}
	}
	time.Sleep(2 * time.Second) // the other was due at the same moment
	if _, err := os.Lstat(filepath.Join(dir, "revoked")); err == nil {
		t.Error("what a login proposed that was ended ran")
	}
}

// TestClosing: while the server ends, calls are told to come again.
func TestClosing(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	tok := s.login("dodo:read dodo:exec")
	over := s.call(tok.Access, "project_overview", `{}`)
	if e := s.call(tok.Access, "dodo_exec", inside(over, "run_command", `{"command":"trap '' TERM INT HUP; while :; do sleep 1; done","background":true}`)); !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		req, err := http.NewRequest("POST", s.base+"/mcp", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tok.Access)
		r, err := http.DefaultClient.Do(req)
		if err != nil || time.Now().After(end) {
			t.Fatalf("it never says so: %v", err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode == 503 {
			if r.Header.Get("Retry-After") != "2" || r.Header.Get("Cache-Control") != "no-store" || !strings.Contains(string(body), "workspace_switching") {
				t.Errorf("%v %s", r.Header, body)
			}
			break
		}
	}
	select {
	case <-s.gone:
	case <-time.After(15 * time.Second):
		t.Error("it does not end")
	}
}
