package oauth

import (
	"net/http"
	"strings"
	"testing"
)

// TestNoOpenRedirect: a client that registered itself cannot make of the server a link to its
// site that nobody said yes to. Once the owner did, it is told what is wrong.
func TestNoOpenRedirect(t *testing.T) {
	w := newWorld(t)
	const site = "https://evil.example/cb"
	client := w.registered(site)
	for _, change := range [][]string{{"response_type", "token"}, {"prompt", "none"}, {"scope", `"`}, {"state", strings.Repeat("x", stateBytes+1)}} {
		a := w.get(w.browser(), "/auth?"+w.asking(client, append(change, "redirect_uri", site)...).Encode())
		if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || strings.Contains(a.body, "evil.example") {
			t.Errorf("%q: %d %v", change, a.StatusCode, a.Header)
		}
		pageHeaders(t, a)
	}
	b := w.browser()
	page := w.begin(b, w.asking(client, "redirect_uri", site))
	_, err := w.Approve(t.Context(), idOf(page))
	must(t, err)
	if to, _ := w.sentTo(w.finish(b, page)); to != site {
		t.Fatal(to)
	}
	a := w.get(w.browser(), "/auth?"+w.asking(client, "redirect_uri", site, "prompt", "none").Encode())
	if to, q := w.sentTo(a); to != site || q.Get("error") != "consent_required" {
		t.Errorf("%d %s", a.StatusCode, to)
	}
}
