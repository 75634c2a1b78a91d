package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// A site has documents of clients, as a test sets them.
type site struct {
	web   *httptest.Server
	asked atomic.Int32
	serve atomic.Pointer[http.HandlerFunc]
}

func newSite(t testing.TB) *site {
	s := &site{}
	s.web = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.serve.Load())(w, r)
	}))
	t.Cleanup(s.web.Close)
	return s
}

func (s *site) id(path string) string { return s.web.URL + path }

func (s *site) set(h http.HandlerFunc) { s.serve.Store(&h) }

// says sets a document for every path.
func (s *site) says(document func(id string) string, headers ...string) {
	s.set(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		fmt.Fprint(w, document(s.id(r.URL.Path)))
	})
}

func usual(id string) string {
	return `{"client_id":"` + id + `","client_name":"A program","redirect_uris":["http://127.0.0.1/callback"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`
}

// TestDocumentLogin: a client whose id is the address of a document logs in without
// registering, and stays in when the document is gone.
func TestDocumentLogin(t *testing.T) {
	site := newSite(t)
	w := newWorld(t, func(c *Config) { c.Fetch = site.web.Client() })
	site.says(usual)
	id := site.id("/oauth/client.json")
	got := w.login(id)
	c, err := w.Verify(t.Context(), got["access_token"].(string))
	if err != nil || c.Client != id {
		t.Fatalf("%+v %v", c, err)
	}
	if back, ok := ParseCaller(c.String()); !ok || back.Client != id || back.Grant != c.Grant {
		t.Errorf("%+v", back)
	}
	o, err := w.store.OAuthClient(t.Context(), id)
	if err != nil || o.Kind != state.ClientMetadata || o.Approved.IsZero() {
		t.Errorf("%+v %v", o, err)
	}
	site.set(http.NotFound)
	if a := w.refresh(id, got["refresh_token"].(string)); a.StatusCode != 200 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	// Nothing is stored for what nobody said yes to.
	site.says(usual)
	w.begin(w.browser(), w.asking(site.id("/another.json")))
	if list, err := w.store.OAuthClients(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
	w.cfg.Fetch = nil
	w.restart()
	if a := w.get(w.browser(), "/auth?"+w.asking(id).Encode()); a.StatusCode != 400 {
		t.Errorf("%d", a.StatusCode)
	}
}

// TestDocumentRefusals: what is no document of the client.
func TestDocumentRefusals(t *testing.T) {
	site := newSite(t)
	const id = "ID"
	with := func(old, now string) string { return strings.Replace(usual(id), old, now, 1) }
	for name, x := range map[string]http.HandlerFunc{
		"not there": http.NotFound,
		"moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, site.id("/other.json"), http.StatusFound)
		},
		"text": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, usual(site.id(r.URL.Path)))
		},
		"another id":  say(strings.Replace(usual(id), id, "https://other.example/client.json", 1)),
		"no id":       say(with(`"client_id":"ID",`, "")),
		"two ids":     say(with(`{`, `{"client_id":"ID",`)),
		"a secret":    say(with(`{`, `{"client_secret":"x",`)),
		"a method":    say(with(`"none"`, `"client_secret_basic"`)),
		"a key":       say(with(`"none"`, `"private_key_jwt"`)),
		"no redirect": say(with(`"http://127.0.0.1/callback"`, "")),
		"a script":    say(with(`"http://127.0.0.1/callback"`, `"javascript:alert(1)"`)),
		"no JSON":     say("{"),
		"too large":   say(with(`{`, `{"x":"`+strings.Repeat("x", documentBytes)+`",`)),
		"broken off": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "9999")
			fmt.Fprint(w, usual(site.id(r.URL.Path)))
		},
		"another redirect": say(with(`/callback`, `/other`)),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Fetch = site.web.Client() })
			site.set(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/other.json" {
					t.Error("a redirect was followed")
				}
				x(w, r.WithContext(context.WithValue(r.Context(), siteKey{}, site)))
			})
			a := w.get(w.browser(), "/auth?"+w.asking(site.id("/client.json")).Encode())
			if a.StatusCode != 400 || a.Header.Get("Location") != "" {
				t.Errorf("%d %v", a.StatusCode, a.Header)
			}
		})
	}
}

type siteKey struct{}

// say answers with a document in which ID stands for its address.
func say(document string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := r.Context().Value(siteKey{}).(*site)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.ReplaceAll(document, `"ID"`, `"`+s.id(r.URL.Path)+`"`))
	}
}

// TestDocumentIDs: what may be the address of a document.
func TestDocumentIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"https://claude.ai/oauth/claude-code-client-metadata": true, "https://chatgpt.com/oauth/codex/client.json": true, "https://a.example:8443/c": true, "https://a.example/c/": true,
		"https://a.example": false, "https://a.example/": false, "http://a.example/c": false, "http://127.0.0.1/c": false, "https://a.example/c?x": false, "https://a.example/c#x": false,
		"https://user@a.example/c": false, "https://a.example/a/../c": false, "https://a.example/./c": false, "https://a.example//c": false, "https://a.example/%2e%2e/c": false,
		"https://a.example/%63": false, "HTTPS://a.example/c": false, "https://A.example/c": false, "https://a.example./c": false, "https:/a.example/c": false,
		"cursor://a/c": false, "https://a.example/" + strings.Repeat("x", documentIDBytes): false,
	} {
		if got := isDocumentID(id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
}

// TestDocumentsAreKept: a document is asked for as often as its site says, a failure not
// again at once, many askers ask once, and what is kept is bounded.
func TestDocumentsAreKept(t *testing.T) {
	site := newSite(t)
	c := &clock{}
	get := func(d *documents, path string) error {
		_, err := d.get(t.Context(), site.id(path))
		return err
	}
	for header, age := range map[string]time.Duration{
		"": documentAge, "max-age=60": time.Minute, "public, MAX-AGE=60, x": time.Minute, "no-store": 0, "no-cache, max-age=60": 0, "max-age=999999999": documentOldest, "max-age=x": 0,
	} {
		d := newDocuments(site.web.Client(), c.now)
		site.says(usual, "Cache-Control", header)
		site.asked.Store(0)
		must(t, get(d, "/c"))
		if age > 0 {
			c.advance(age - time.Millisecond)
			must(t, get(d, "/c"))
			if n := site.asked.Load(); n != 1 {
				t.Errorf("%q: asked %d times", header, n)
			}
			c.advance(time.Millisecond)
		}
		must(t, get(d, "/c"))
		if n := site.asked.Load(); n != 2 {
			t.Errorf("%q: asked %d times", header, n)
		}
	}
	d := newDocuments(site.web.Client(), c.now)
	site.set(http.NotFound)
	site.asked.Store(0)
	for range 3 {
		if err := get(d, "/c"); !errors.Is(err, contract.InvalidInput) {
			t.Error(err)
		}
	}
	if n := site.asked.Load(); n != 1 {
		t.Errorf("a failure: asked %d times", n)
	}
	c.advance(documentFailure)
	site.says(usual)
	must(t, get(d, "/c"))

	site.asked.Store(0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := get(d, "/many"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := site.asked.Load(); n != 1 {
		t.Errorf("8 at once: asked %d times", n)
	}
	for i := range mostDocuments + 10 {
		must(t, get(d, fmt.Sprint("/n", i)))
	}
	if len(d.kept) > mostDocuments {
		t.Errorf("%d are kept", len(d.kept))
	}
}

// TestSlowDocuments: a site that does not answer is waited for by a few at a time, and not for
// long.
func TestSlowDocuments(t *testing.T) {
	site := newSite(t)
	stop := make(chan struct{})
	defer close(stop)
	site.set(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	})
	client := site.web.Client()
	asking := &counted{RoundTripper: client.Transport}
	client.Transport = asking
	d := newDocuments(client, time.Now)
	d.patience = 300 * time.Millisecond
	began := time.Now()
	var wg sync.WaitGroup
	for i := range mostFetches * 3 {
		wg.Go(func() {
			if _, err := d.get(context.Background(), site.id(fmt.Sprint("/n", i))); err == nil {
				t.Error("it answered")
			}
		})
	}
	wg.Wait()
	if took := time.Since(began); took > documentTime {
		t.Errorf("it took %s", took)
	}
	if n := asking.most.Load(); n > mostFetches {
		t.Errorf("%d were asked at once", n)
	}
}

// counted counts the requests that are waited for.
type counted struct {
	http.RoundTripper
	now, most atomic.Int32
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	defer c.now.Add(-1)
	n := c.now.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return c.RoundTripper.RoundTrip(r)
}

// FuzzDocument: what is taken is a public client whose redirects are ones.
func FuzzDocument(f *testing.F) {
	const id = "https://a.example/client.json"
	f.Add([]byte(usual(id)))
	f.Add([]byte(`{"client_id":"` + id + `","redirect_uris":["cursor://a/b"],"client_name":"\u202e"}`))
	f.Add([]byte(`{"client_id":["x"],"redirect_uris":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := parseDocument(id, raw)
		if err != nil {
			if o.ID != "" {
				t.Fatalf("%+v", o)
			}
			return
		}
		if o.ID != id || o.Kind != state.ClientMetadata || o.AuthMethod != methodNone || o.Secret != "" || len(o.Redirects) == 0 || len([]rune(o.Name)) > nameRunes || strings.ContainsAny(o.Name, "\r\n\x1b\u202e") {
			t.Fatalf("%+v", o)
		}
		for _, r := range o.Redirects {
			if _, why := parseRedirect(r); why != "" {
				t.Fatalf("%q: %s", r, why)
			}
		}
	})
}
