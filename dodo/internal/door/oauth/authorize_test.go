package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/state"
)

// TestAuthorizePages: while client and redirect are not certain, a page says so and nothing
// is sent anywhere.
func TestAuthorizePages(t *testing.T) {
	w := newWorld(t)
	client := w.registered("http://127.0.0.1/callback", "https://a.example/cb")
	for name, query := range map[string]string{
		"nothing":                 "",
		"no client":               w.asking("").Encode(),
		"an unknown client":       w.asking("dcr-000000000000").Encode(),
		"a client's name":         w.asking("A program").Encode(),
		"two clients":             w.asking(client).Encode() + "&client_id=" + client,
		"a document":              w.asking("https://a.example/client.json").Encode(),
		"a very long client":      w.asking(strings.Repeat("x", paramBytes+1)).Encode(),
		"no redirect":             w.asking(client, "redirect_uri", "").Encode(),
		"two redirects":           w.asking(client).Encode() + "&redirect_uri=https%3A%2F%2Fevil.example%2F",
		"another redirect":        w.asking(client, "redirect_uri", "https://evil.example/cb").Encode(),
		"another path":            w.asking(client, "redirect_uri", "http://127.0.0.1:43219/callback/..").Encode(),
		"another loopback":        w.asking(client, "redirect_uri", "http://localhost:43219/callback").Encode(),
		"a user before":           w.asking(client, "redirect_uri", "http://127.0.0.1:43219@evil.example/callback").Encode(),
		"a backslash":             w.asking(client, "redirect_uri", "https://a.example\\@evil.example/cb").Encode(),
		"an encoded slash":        w.asking(client, "redirect_uri", "https://a.example%2fcb").Encode(),
		"a dot behind":            w.asking(client, "redirect_uri", "https://a.example./cb").Encode(),
		"capitals":                w.asking(client, "redirect_uri", "https://A.EXAMPLE/cb").Encode(),
		"a fragment":              w.asking(client, "redirect_uri", "https://a.example/cb#x").Encode(),
		"a query":                 w.asking(client, "redirect_uri", "https://a.example/cb?x").Encode(),
		"a script":                w.asking(client, "redirect_uri", "javascript:alert(1)").Encode(),
		"http in place of https":  w.asking(client, "redirect_uri", "http://a.example/cb").Encode(),
		"escapes that are broken": w.asking(client).Encode() + "&x=%zz",
		"a query that is a book":  w.asking(client).Encode() + "&x=" + strings.Repeat("x", bodyBytes),
	} {
		a := w.get(w.browser(), "/auth?"+query)
		if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || len(a.Cookies()) != 0 || !strings.Contains(a.body, "The login cannot go on") {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Header)
		}
		pageHeaders(t, a)
		if strings.Contains(a.body, "evil.example") {
			t.Errorf("%s: the page leads there", name)
		}
	}
	if len(w.Pending()) != 0 {
		t.Errorf("%+v", w.Pending())
	}
}

// pageHeaders are those of every page.
func pageHeaders(t *testing.T, a reply) {
	t.Helper()
	policy := a.Header.Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action "} {
		if !strings.Contains(policy, part) {
			t.Errorf("%q lacks %q", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Frame-Options") != "DENY" ||
		a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%v", a.Header)
	}
}

// TestAuthorizeRefusals: what else is wrong is told to the client, with the issuer.
func TestAuthorizeRefusals(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	for name, x := range map[string]struct {
		query string
		code  string
		state string
	}{
		"no response type":      {w.asking(client, "response_type", "").Encode(), "invalid_request", "s t&te"},
		"token":                 {w.asking(client, "response_type", "token").Encode(), "unsupported_response_type", "s t&te"},
		"hybrid":                {w.asking(client, "response_type", "code id_token").Encode(), "unsupported_response_type", "s t&te"},
		"a fragment":            {w.asking(client, "response_mode", "fragment").Encode(), "invalid_request", "s t&te"},
		"a form":                {w.asking(client, "response_mode", "form_post").Encode(), "invalid_request", "s t&te"},
		"no challenge":          {w.asking(client, "code_challenge", "").Encode(), "invalid_request", "s t&te"},
		"no method":             {w.asking(client, "code_challenge_method", "").Encode(), "invalid_request", "s t&te"},
		"plain":                 {w.asking(client, "code_challenge_method", "plain").Encode(), "invalid_request", "s t&te"},
		"s256":                  {w.asking(client, "code_challenge_method", "s256").Encode(), "invalid_request", "s t&te"},
		"a short challenge":     {w.asking(client, "code_challenge", "x").Encode(), "invalid_request", "s t&te"},
		"a padded challenge":    {w.asking(client, "code_challenge", challengeOf(verifier)+"=").Encode(), "invalid_request", "s t&te"},
		"a challenge and LF":    {w.asking(client, "code_challenge", challengeOf(verifier)+"\n").Encode(), "invalid_request", "s t&te"},
		"two challenges":        {w.asking(client).Encode() + "&code_challenge=x", "invalid_request", "s t&te"},
		"two states":            {w.asking(client).Encode() + "&state=x", "invalid_request", ""},
		"two of anything":       {w.asking(client).Encode() + "&x=1&x=2", "invalid_request", "s t&te"},
		"a long state":          {w.asking(client, "state", strings.Repeat("x", stateBytes+1)).Encode(), "invalid_request", ""},
		"a long nonce":          {w.asking(client, "nonce", strings.Repeat("x", nonceBytes+1)).Encode(), "invalid_request", "s t&te"},
		"a scope with a quote":  {w.asking(client, "scope", `dodo:read "`).Encode(), "invalid_scope", "s t&te"},
		"a scope with LF":       {w.asking(client, "scope", "dodo:read\ndodo:exec").Encode(), "invalid_scope", "s t&te"},
		"another resource":      {w.asking(client, "resource", "https://other.example/mcp").Encode(), "invalid_target", "s t&te"},
		"one resource of two":   {w.asking(client).Encode() + "&resource=https%3A%2F%2Fother.example%2Fmcp", "invalid_target", "s t&te"},
		"a request object":      {w.asking(client, "request", "x").Encode(), "request_not_supported", "s t&te"},
		"a request's address":   {w.asking(client, "request_uri", "https://a.example/r").Encode(), "request_uri_not_supported", "s t&te"},
		"prompt none":           {w.asking(client, "prompt", "none").Encode(), "consent_required", "s t&te"},
		"prompt none and login": {w.asking(client, "prompt", "none login").Encode(), "invalid_request", "s t&te"},
		"no state":              {w.asking(client, "state", "", "prompt", "none").Encode(), "consent_required", ""},
	} {
		for _, path := range []string{"/auth", "/authorize"} {
			a := w.get(w.browser(), path+"?"+x.query)
			to, q := w.sentTo(a)
			if to != callback || q.Get("error") != x.code || q.Get("iss") != w.cfg.Issuer || q.Get("state") != x.state || q.Has("state") != (x.state != "") || q.Has("code") {
				t.Errorf("%s: %s %v", name, to, q)
			}
			if a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", name, a.Header)
			}
		}
	}
	if len(w.Pending()) != 0 {
		t.Errorf("%+v", w.Pending())
	}
}

// TestAuthorizeTakes: what clients in use send.
func TestAuthorizeTakes(t *testing.T) {
	w := newWorld(t)
	client := w.registered("http://127.0.0.1/callback", "http://localhost/callback", "cursor://anysphere.cursor-mcp/oauth/callback", "https://a.example/cb?x=1")
	for name, v := range map[string]url.Values{
		"prompt consent":     w.asking(client, "prompt", "consent"),
		"prompt login":       w.asking(client, "prompt", "login"),
		"no resource":        w.asking(client, "resource", ""),
		"a slash behind":     w.asking(client, "resource", w.cfg.Resource+"/"),
		"capitals":           w.asking(client, "resource", strings.Replace(w.cfg.Resource, "http", "HTTP", 1)),
		"no scope":           w.asking(client, "scope", ""),
		"any port":           w.asking(client, "redirect_uri", "http://127.0.0.1:1/callback"),
		"localhost":          w.asking(client, "redirect_uri", "http://localhost:65535/callback"),
		"a scheme":           w.asking(client, "redirect_uri", "cursor://anysphere.cursor-mcp/oauth/callback"),
		"response mode":      w.asking(client, "response_mode", "query"),
		"words of no effect": w.asking(client, "ui_locales", "de", "max_age", "0"),
	} {
		b := w.browser()
		page := w.begin(b, v)
		if a := w.get(b, page); a.StatusCode != 200 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
		must(t, ignored(w.Deny(t.Context(), idOf(page))))
		to, q := w.sentTo(w.finish(b, page))
		if to != v.Get("redirect_uri") || q.Get("error") != "access_denied" || q.Get("iss") != w.cfg.Issuer || q.Get("state") != "s t&te" || q.Has("code") {
			t.Errorf("%s: %s %v", name, to, q)
		}
	}
	a := w.post(w.browser(), "/auth", formKind, w.asking(client).Encode())
	if a.StatusCode != http.StatusSeeOther || len(w.Pending()) != 1 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	b := w.browser()
	page := w.begin(b, w.asking(client, "redirect_uri", "https://a.example/cb?x=1"))
	must(t, ignored(w.Approve(t.Context(), idOf(page))))
	if a := w.finish(b, page); !strings.HasPrefix(a.Header.Get("Location"), "https://a.example/cb?x=1&code=") {
		t.Errorf("%v", a.Header)
	}
}

func ignored[T any](_ T, err error) error { return err }

// TestStaticClientIsExact: of a client of the owner the redirect counts, not what it says.
func TestStaticClientIsExact(t *testing.T) {
	w := newWorld(t)
	for _, redirects := range [][]string{nil, {"https://a.example/*"}, {"http://a.example/"}, {"javascript:alert(1)"}, {"https://a.example/cb", "https://a.example/#x"}} {
		if _, err := AddClient(t.Context(), w.store, AddClientOptions{Redirects: redirects}); err == nil {
			t.Errorf("%v was taken", redirects)
		}
	}
	added, err := AddClient(t.Context(), w.store, AddClientOptions{Name: "x\x1b[31m\u202ey", Redirects: []string{"https://chatgpt.com/connector/oauth/1"}, Public: true})
	must(t, err)
	c, err := w.store.OAuthClient(t.Context(), added.Client.ID)
	must(t, err)
	if added.Secret != "" || c.Kind != state.ClientStatic || c.Name != `x\u{1b}[31m\u{202e}y` || !strings.HasPrefix(c.ID, "dodo-client-") || len(c.ID) != len("dodo-client-")+12 {
		t.Errorf("%+v", c)
	}
	confidential, err := AddClient(t.Context(), w.store, AddClientOptions{Redirects: []string{"https://chatgpt.com/connector/oauth/1"}})
	must(t, err)
	if len(confidential.Secret) < 43 || strings.Contains(confidential.Client.Secret, confidential.Secret) || confidential.Client.Secret != hashOf(confidential.Secret) {
		t.Errorf("%+v", confidential)
	}
}

// FuzzAuthorize: whatever is asked, nothing is sent to an address that is not registered, and
// an answer says who gives it.
func FuzzAuthorize(f *testing.F) {
	w := newWorld(f)
	client := w.registered("http://127.0.0.1/callback", "https://a.example/cb")
	f.Add(w.asking(client).Encode())
	f.Add(w.asking(client, "redirect_uri", "https://a.example/cb", "prompt", "none").Encode())
	f.Add(w.asking(client, "redirect_uri", "https://a.example@evil.example/cb").Encode())
	f.Add("client_id=" + client + "&redirect_uri=https://a.example/cb&state=%0d%0aX:1")
	f.Add(w.asking(client).Encode() + "&resource=x&scope=%00")
	f.Fuzz(func(t *testing.T, query string) {
		r, err := http.NewRequest(http.MethodGet, w.cfg.Issuer+"/auth", nil)
		must(t, err)
		r.URL.RawQuery = query
		rw := newRecorder()
		w.Handler().ServeHTTP(rw, r)
		w.consents.byID = map[string]*waiting{}
		to := rw.Header().Get("Location")
		switch {
		case to == "":
			if rw.status != http.StatusBadRequest {
				t.Fatalf("%d", rw.status)
			}
		case strings.HasPrefix(to, "/interaction/"):
		default:
			u, err := url.Parse(to)
			if err != nil || u.Query().Get("iss") != w.cfg.Issuer || u.Query().Has("code") || len(u.Query()["iss"]) != 1 || strings.ContainsAny(to, "\r\n") {
				t.Fatalf("%s: %v", to, err)
			}
			if !strings.HasPrefix(to, "https://a.example/cb?") && (u.Scheme != "http" || u.Hostname() != "127.0.0.1" || u.Path != "/callback") {
				t.Fatalf("%q leads to %s", query, to)
			}
		}
	})
}

// A recorder keeps what was answered.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func newRecorder() *recorder                    { return &recorder{header: http.Header{}, status: 200} }
func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// FuzzTokenForm: no form gets tokens without a code, and none breaks the endpoint.
func FuzzTokenForm(f *testing.F) {
	w := newWorld(f)
	client := w.registered()
	f.Add(exchange(client, "x").Encode(), "")
	f.Add("grant_type=refresh_token&client_id="+client+"&refresh_token=dodo_rt_x&scope=dodo:read", "Basic eDp5")
	f.Add("grant_type=authorization_code&grant_type=x", "Basic "+client)
	f.Add("token=x&client_id="+client, "")
	f.Fuzz(func(t *testing.T, body, header string) {
		for _, path := range []string{"/token", "/token/revocation"} {
			r, err := http.NewRequest(http.MethodPost, w.cfg.Issuer+path, strings.NewReader(body))
			must(t, err)
			r.Header.Set("Content-Type", formKind)
			if header != "" {
				r.Header.Set("Authorization", header)
			}
			rw := newRecorder()
			w.Handler().ServeHTTP(rw, r)
			if rw.status >= 500 || rw.status == 200 && path == "/token" || strings.Contains(rw.body.String(), "access_token") || rw.Header().Get("Cache-Control") != "no-store" {
				t.Fatalf("%s %q: %d %s", path, body, rw.status, rw.body.String())
			}
		}
	})
}
