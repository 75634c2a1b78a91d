package oauth

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A clock runs only when it is told to.
type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// A world is a server on a real socket, with the state it stands on.
type world struct {
	testing.TB
	*Server
	store *state.Store
	clock *clock
	cfg   Config
	web   *httptest.Server
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.Chmod(dir, 0o700))
	w := &world{TB: t, clock: &clock{}}
	w.clock.ms.Store(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixMilli())
	w.store, err = state.Open(t.Context(), dir, state.Options{Now: w.clock.now})
	must(t, err)
	t.Cleanup(func() { w.store.Close() })
	w.web = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.Handler().ServeHTTP(rw, r) }))
	t.Cleanup(w.web.Close)
	issuer := "http://" + w.web.Listener.Addr().String()
	w.cfg = Config{
		Store: w.store, Dir: dir, Issuer: issuer, Resource: issuer + "/mcp", Registration: true, Now: w.clock.now,
		AccessMode: func() contract.AccessMode { return contract.AccessPersonal },
	}
	for _, f := range change {
		f(&w.cfg)
	}
	w.restart()
	w.web.Start()
	return w
}

// restart puts another server in the place of the one that runs, as after a restart of dodo.
func (w *world) restart() {
	w.Helper()
	if w.Server != nil {
		must(w, w.Server.Close())
	}
	s, err := New(w.Context(), w.cfg)
	must(w, err)
	w.Cleanup(func() { s.Close() })
	w.Server = s
}

// A browser keeps cookies and follows nothing.
func (w *world) browser() *http.Client {
	jar, err := cookiejar.New(nil)
	must(w, err)
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// An reply is an answer that was read.
type reply struct {
	*http.Response
	body string
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal([]byte(r.body), &out); err != nil {
		t.Fatalf("%d %s: %v", r.StatusCode, r.body, err)
	}
	return out
}

func (w *world) do(c *http.Client, r *http.Request) reply {
	w.Helper()
	a, err := c.Do(r)
	must(w, err)
	defer a.Body.Close()
	raw, err := io.ReadAll(a.Body)
	must(w, err)
	return reply{a, string(raw)}
}

func (w *world) get(c *http.Client, path string) reply {
	w.Helper()
	if strings.HasPrefix(path, "/") {
		path = w.cfg.Issuer + path
	}
	r, err := http.NewRequest(http.MethodGet, path, nil)
	must(w, err)
	return w.do(c, r)
}

func (w *world) post(c *http.Client, path, kind, body string, headers ...string) reply {
	w.Helper()
	r, err := http.NewRequest(http.MethodPost, w.cfg.Issuer+path, strings.NewReader(body))
	must(w, err)
	r.Header.Set("Content-Type", kind)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return w.do(c, r)
}

const formKind = "application/x-www-form-urlencoded"

func (w *world) form(path string, v url.Values, headers ...string) reply {
	w.Helper()
	return w.post(w.browser(), path, formKind, v.Encode(), headers...)
}

const (
	callback = "http://127.0.0.1:43219/callback"
	verifier = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
)

// registered is a public client as the programs of developers register themselves.
func (w *world) registered(redirects ...string) string {
	w.Helper()
	if redirects == nil {
		redirects = []string{"http://127.0.0.1/callback"}
	}
	raw, err := json.Marshal(map[string]any{"client_name": "A program", "redirect_uris": redirects, "token_endpoint_auth_method": "none"})
	must(w, err)
	a := w.post(w.browser(), "/register", "application/json", string(raw))
	if a.StatusCode != http.StatusCreated {
		w.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.json(w)["client_id"].(string)
}

// asking is an authorization request that is in order.
func (w *world) asking(client string, change ...string) url.Values {
	v := url.Values{
		"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"dodo:read dodo:write"}, "state": {"s t&te"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "resource": {w.cfg.Resource},
	}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

// begin begins a login and returns the path of its page.
func (w *world) begin(b *http.Client, v url.Values) string {
	w.Helper()
	a := w.get(b, "/auth?"+v.Encode())
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/interaction/") {
		w.Fatalf("%d %s %s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
	return a.Header.Get("Location")
}

var formField = regexp.MustCompile(`name="form" value="([^"]+)"`)

// finish sends the form of the page.
func (w *world) finish(b *http.Client, page string, headers ...string) reply {
	w.Helper()
	v := url.Values{}
	if m := formField.FindStringSubmatch(w.get(b, page).body); m != nil {
		v.Set("form", m[1])
	}
	return w.post(b, page+"/complete", formKind, v.Encode(), headers...)
}

func idOf(page string) string { return strings.TrimPrefix(page, "/interaction/") }

// sentTo reads where a browser was sent, and takes the address apart.
func (w *world) sentTo(a reply) (string, url.Values) {
	w.Helper()
	if a.StatusCode != http.StatusSeeOther {
		w.Fatalf("%d %s", a.StatusCode, a.body)
	}
	to, err := url.Parse(a.Header.Get("Location"))
	must(w, err)
	q := to.Query()
	to.RawQuery = ""
	return to.String(), q
}

// code is a login with the owner's yes, up to the code.
func (w *world) code(client string, change ...string) string {
	w.Helper()
	b := w.browser()
	page := w.begin(b, w.asking(client, change...))
	_, err := w.Approve(w.Context(), idOf(page))
	must(w, err)
	to, q := w.sentTo(w.finish(b, page))
	if q.Get("code") == "" || q.Get("iss") != w.cfg.Issuer || q.Get("state") != "s t&te" || !strings.HasPrefix(to, "http://127.0.0.1:43219/") {
		w.Fatalf("%s %v", to, q)
	}
	return q.Get("code")
}

func exchange(client, code string, change ...string) url.Values {
	v := url.Values{"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}}
	for i := 0; i < len(change); i += 2 {
		if change[i+1] == "" {
			v.Del(change[i])
		} else {
			v.Set(change[i], change[i+1])
		}
	}
	return v
}

// tokens is a whole login.
func (w *world) login(client string, change ...string) map[string]any {
	w.Helper()
	a := w.form("/token", exchange(client, w.code(client, change...)))
	if a.StatusCode != http.StatusOK {
		w.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return a.json(w)
}

func (w *world) refresh(client, token string, change ...string) reply {
	w.Helper()
	v := url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}}
	for i := 0; i < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	return w.form("/token", v)
}

func (w *world) holds(token any) bool {
	w.Helper()
	_, err := w.Verify(w.Context(), token.(string))
	return err == nil
}
