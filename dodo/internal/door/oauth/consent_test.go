package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
)

// TestConsentPage: the page says who asks, for what, where the answer goes and what the owner
// does, and the list says the same.
func TestConsentPage(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	b := w.browser()
	page := w.begin(b, w.asking(client))
	a := w.get(b, page)
	pageHeaders(t, a)
	list := w.Pending()
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	c := list[0]
	if c.ID != idOf(page) || c.ClientID != client || c.ClientName != "A program" || c.RedirectHost != "127.0.0.1:43219" || c.Redirect != callback ||
		strings.Join(c.Scopes, " ") != "dodo:read dodo:write" || c.Resource != w.cfg.Resource || c.AccessMode != contract.AccessPersonal ||
		!c.Expires.Equal(c.Created.Add(consentLife)) || c.Status != ConsentPending || !c.LoopbackOnly || strings.Count(c.Phrase, "-") != 2 {
		t.Errorf("%+v", c)
	}
	for _, part := range []string{
		"A program", client, "<strong>127.0.0.1:43219</strong>", callback, c.Phrase, "dodo auth approve " + c.ID, "read files", "change, make and delete files",
		"stay logged in", "any program of it can use that name", "in every project that you registered",
	} {
		if !strings.Contains(a.body, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.Contains(a.body, "run commands") || strings.Contains(a.body, "<form") || regexp.MustCompile(`(?i)<script[^>]*>[^<]|\son[a-z]+=|style=|<style|javascript:`).MatchString(a.body) {
		t.Error(a.body)
	}
	if policy := a.Header.Get("Content-Security-Policy"); !strings.HasSuffix(policy, "form-action 'self' http://127.0.0.1:43219") {
		t.Error(policy)
	}
	if got := w.get(b, page+"/status").json(t)["status"]; got != "pending" {
		t.Error(got)
	}
	for name, kind := range map[string]string{"page.js": "text/javascript", "page.css": "text/css"} {
		if a := w.get(b, "/interaction/"+name); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Errorf("%d %v", a.StatusCode, a.Header)
		}
	}
	managed := w.cfg
	managed.AccessMode = func() contract.AccessMode { return contract.AccessManaged }
	w.Server.cfg = managed
	if a := w.get(b, page); !strings.Contains(a.body, "only in workspaces where you give it access") {
		t.Error(a.body)
	}
}

// TestConsentPageEscapes: what a client says of itself is text.
func TestConsentPageEscapes(t *testing.T) {
	w := newWorld(t)
	odd := "https://a.example/cb?q=%22%3E%3Cscript%3E&lt=(x)"
	for _, name := range []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `</dd></dl></main><form action=https://evil.example>`, "a\u202eb", "x\r\nSet-Cookie: a=b", "{{.ID}}", `&lt;b&gt;`,
		strings.Repeat("\u4e16", 500), "",
	} {
		raw := contractJSON(t, map[string]any{"client_name": name, "redirect_uris": []string{odd}, "token_endpoint_auth_method": "none"})
		a := w.post(w.browser(), "/register", "application/json", raw)
		if a.StatusCode != 201 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		b := w.browser()
		v := w.asking(a.json(t)["client_id"].(string), "redirect_uri", odd)
		page := w.begin(b, v)
		body := w.get(b, page).body
		if strings.Count(body, "<script") != 1 || strings.Contains(body, "<img") || strings.Contains(body, "<form") || strings.Contains(body, "\u202e") || strings.Count(body, "\u4e16") > nameRunes {
			t.Error(body)
		}
		c := w.Pending()
		if got := c[len(c)-1].ClientName; strings.ContainsAny(got, "\r\n\x1b") || len([]rune(got)) > nameRunes {
			t.Errorf("%q", got)
		}
		must(t, ignored(w.Deny(t.Context(), idOf(page))))
	}
}

// TestConsentIsOfOneBrowser: who did not begin a login sees nothing of it, and takes nothing
// from it, also when the owner said yes.
func TestConsentIsOfOneBrowser(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	mine, other := w.browser(), w.browser()
	page := w.begin(mine, w.asking(client))
	w.begin(other, w.asking(client)) // it has a cookie of its own
	steal := w.browser()
	guess := &http.Cookie{Name: cookieName, Value: random(secretBytes), Path: "/"}
	u, err := url.Parse(w.cfg.Issuer)
	must(t, err)
	steal.Jar.SetCookies(u, []*http.Cookie{guess})
	for range 2 {
		for _, b := range []*http.Client{other, steal} {
			for _, a := range []reply{w.get(b, page), w.get(b, page+"/status"), w.post(b, page+"/complete", formKind, "form=x")} {
				if a.StatusCode != http.StatusForbidden || strings.Contains(a.body, client) || strings.Contains(a.body, "127.0.0.1:43219") {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
				pageHeaders(t, a)
			}
		}
		must(t, ignored(w.Approve(t.Context(), idOf(page))))
	}
	if _, q := w.sentTo(w.finish(mine, page)); q.Get("code") == "" {
		t.Error(q)
	}
}

// TestCompleteIsOfThePage: the form counts only when the page itself sends it.
func TestCompleteIsOfThePage(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	b := w.browser()
	page := w.begin(b, w.asking(client))
	if a := w.finish(b, page); a.StatusCode != http.StatusForbidden {
		t.Errorf("without a form: %d", a.StatusCode)
	}
	must(t, ignored(w.Approve(t.Context(), idOf(page))))
	field := formField.FindStringSubmatch(w.get(b, page).body)[1]
	for name, x := range map[string]struct {
		body    string
		kind    string
		headers []string
	}{
		"no field":        {"", formKind, nil},
		"a wrong field":   {"form=x", formKind, nil},
		"the id":          {"form=" + idOf(page), formKind, nil},
		"twice":           {"form=" + field + "&form=" + field, formKind, nil},
		"JSON":            {`{"form":"` + field + `"}`, "application/json", nil},
		"text":            {"form=" + field, "text/plain", nil},
		"another origin":  {"form=" + field, formKind, []string{"Origin", "https://evil.example"}},
		"another port":    {"form=" + field, formKind, []string{"Origin", "http://127.0.0.1:1"}},
		"no origin":       {"form=" + field, formKind, []string{"Origin", "null"}},
		"a foreign site":  {"form=" + field, formKind, []string{"Sec-Fetch-Site", "cross-site"}},
		"a sibling site":  {"form=" + field, formKind, []string{"Sec-Fetch-Site", "same-site"}},
		"in the query":    {"", formKind, nil},
		"a very long one": {"form=" + field + "&x=" + strings.Repeat("x", bodyBytes), formKind, nil},
	} {
		if a := w.post(b, page+"/complete?form="+field, x.kind, x.body, x.headers...); a.StatusCode != http.StatusForbidden || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.Header)
		}
	}
	if a := w.get(b, page+"/complete?form="+field); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "POST" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	a := w.finish(b, page, "Origin", w.cfg.Issuer, "Sec-Fetch-Site", "same-origin")
	if _, q := w.sentTo(a); q.Get("code") == "" {
		t.Error(q)
	}
	if again := w.post(b, page+"/complete", formKind, "form="+field); again.StatusCode != http.StatusNotFound {
		t.Errorf("a second time: %d", again.StatusCode)
	}
	if grants, err := w.store.Grants(t.Context()); err != nil || len(grants) != 1 {
		t.Errorf("%v %v", grants, err)
	}
}

// TestConsentDecisions: what the owner can say, once, and in time.
func TestConsentDecisions(t *testing.T) {
	w := newWorld(t)
	ctx, client := t.Context(), w.registered()
	fails := func(_ Consent, err error) func(code error) {
		t.Helper()
		return func(code error) {
			t.Helper()
			if !errors.Is(err, code) {
				t.Errorf("%v, want %v", err, code)
			}
		}
	}
	fails(w.Approve(ctx, "auth_none"))(contract.NotFound)
	b := w.browser()
	page := w.begin(b, w.asking(client))
	field := "form=" + w.consents.byID[idOf(page)].form
	if a := w.post(b, page+"/complete", formKind, field); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != page {
		t.Errorf("before an answer: %d %v", a.StatusCode, a.Header)
	}
	for range 2 {
		c, err := w.Approve(ctx, idOf(page))
		if err != nil || c.Status != ConsentApproved || len(w.Pending()) != 0 {
			t.Errorf("%+v %v", c, err)
		}
	}
	fails(w.Deny(ctx, idOf(page)))(contract.Conflict)
	events, err := w.store.Events(ctx, "", 1)
	must(t, err)
	if events[0].Tool != "owner.auth.approve" || events[0].Ref != idOf(page) || events[0].Principal != "owner" {
		t.Errorf("%+v", events)
	}
	w.clock.advance(consentLife)
	if a := w.get(b, page); !strings.Contains(a.body, "Nobody answered in time") {
		t.Error(a.body)
	}
	if a := w.post(b, page+"/complete", formKind, field); a.StatusCode != http.StatusConflict {
		t.Errorf("too late: %d", a.StatusCode)
	}

	client = w.registered()
	page = w.begin(b, w.asking(client))
	w.clock.advance(consentLife - time.Second)
	must(t, ignored(w.Approve(ctx, idOf(page))))
	w.clock.advance(30 * time.Second)
	if _, q := w.sentTo(w.finish(b, page)); q.Get("code") == "" {
		t.Error("a yes in the last second came too late for the browser")
	}

	page = w.begin(b, w.asking(client))
	w.clock.advance(consentLife)
	fails(w.Approve(ctx, idOf(page)))(contract.ApprovalExpired)
	if len(w.Pending()) != 0 {
		t.Error("it still waits")
	}
	page = w.begin(b, w.asking(client))
	must(t, ignored(w.Deny(ctx, idOf(page))))
	fails(w.Approve(ctx, idOf(page)))(contract.Conflict)
	if a := w.get(b, page); !strings.Contains(a.body, "You refused it") {
		t.Error(a.body)
	}

	page = w.begin(b, w.asking(client))
	must(t, ignored(w.Approve(ctx, idOf(page))))
	w.restart()
	if a := w.get(b, page); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "Begin it again in the client") {
		t.Errorf("after a restart: %d %s", a.StatusCode, a.body)
	}
	fails(w.Approve(ctx, idOf(page)))(contract.NotFound)
}

// TestConsentFlood: nobody who is not known shuts out those who are, and no client the others.
func TestConsentFlood(t *testing.T) {
	w := newWorld(t)
	known := []string{w.registered(), w.registered()}
	for _, id := range known {
		w.login(id)
	}
	begin := func(client string) int {
		return w.get(w.browser(), "/auth?"+w.asking(client).Encode()).StatusCode
	}
	for i := range mostUnknown {
		if i%mostOfOne == 0 {
			known = append(known, w.registered())
		}
		if got := begin(known[len(known)-1]); got != http.StatusSeeOther {
			t.Fatal(got)
		}
	}
	if got := begin(w.registered()); got != http.StatusTooManyRequests {
		t.Errorf("one more that nobody knows: %d", got)
	}
	for range mostOfOne {
		if got := begin(known[0]); got != http.StatusSeeOther {
			t.Fatal(got)
		}
	}
	if got := begin(known[0]); got != http.StatusTooManyRequests {
		t.Errorf("one more of the same: %d", got)
	}
	for range mostPending - mostUnknown - mostOfOne {
		if got := begin(known[1]); got != http.StatusSeeOther {
			t.Fatal(got)
		}
	}
	if len(w.Pending()) != mostPending {
		t.Errorf("%d wait", len(w.Pending()))
	}
	third := w.registered()
	a := w.get(w.browser(), "/auth?"+w.asking(third).Encode())
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v", a.StatusCode, a.Header)
	}
	phrases := map[string]bool{}
	for _, c := range w.Pending() {
		phrases[c.Phrase] = true
	}
	if len(phrases) != mostPending {
		t.Error("two logins have one phrase")
	}
	w.clock.advance(consentLife)
	if got := begin(third); got != http.StatusSeeOther {
		t.Errorf("when they have ended: %d", got)
	}
	w.clock.advance(consentLife + consentShown + time.Second)
	begin(known[0])
	if len(w.consents.byID) != 1 {
		t.Errorf("%d are kept", len(w.consents.byID))
	}
}

// TestSecureCookie: behind https the cookie never goes out in the clear.
func TestSecureCookie(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	a := w.get(w.browser(), "/auth?"+w.asking(client).Encode())
	c := a.Cookies()[0]
	if c.Name != "dodo_login" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != a.Header.Get("Location") || c.Secure {
		t.Errorf("%+v", c)
	}
	was := w.cfg.Issuer
	w.cfg.Issuer, w.cfg.Resource = "https://dodo.example", "https://dodo.example/mcp"
	w.restart()
	w.cfg.Issuer = was
	a = w.get(w.browser(), "/auth?"+w.asking(client).Encode())
	if c := a.Cookies()[0]; c.Name != "__Secure-dodo_login" || !c.Secure {
		t.Errorf("%+v", c)
	}
}

// TestPhraseWords: the words are as many as are said, and none is there twice.
func TestPhraseWords(t *testing.T) {
	seen := map[string]bool{}
	for _, word := range phraseWords {
		if seen[word] || len(word) < 4 {
			t.Error(word)
		}
		seen[word] = true
	}
	if len(seen) != 128 {
		t.Errorf("%d words", len(seen))
	}
}
