package oauth

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// TestSDKClient: the client of the Go SDK finds its way from a refusal alone: to the
// documents, to a registration, and to tokens with all scopes.
func TestSDKClient(t *testing.T) {
	w := newWorld(t)
	w.clock.ms.Store(time.Now().UnixMilli())
	b := w.browser()
	h, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{callback}, ClientName: "An SDK", TokenEndpointAuthMethod: "none", GrantTypes: []string{typeCode, typeRefresh},
		}},
		RequestRefreshToken: true, Client: w.web.Client(),
		AuthorizationCodeFetcher: func(ctx context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			page := w.get(b, a.URL).Header.Get("Location")
			if _, err := w.Approve(ctx, idOf(page)); err != nil {
				return nil, err
			}
			_, q := w.sentTo(w.finish(b, page))
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		},
	})
	must(t, err)
	r, err := http.NewRequest(http.MethodPost, w.cfg.Resource, nil)
	must(t, err)
	refusal := &http.Response{StatusCode: http.StatusUnauthorized, Header: http.Header{"Www-Authenticate": {w.Challenge(nil)}}, Body: http.NoBody, Request: r}
	must(t, h.Authorize(t.Context(), r, refusal))
	source, err := h.TokenSource(t.Context())
	must(t, err)
	token, err := source.Token()
	must(t, err)
	c, err := w.Verify(t.Context(), token.AccessToken)
	if err != nil || len(c.Scopes) != 3 || !strings.HasPrefix(c.Client, "dcr-") || token.RefreshToken == "" {
		t.Errorf("%+v %v", c, err)
	}
}

// TestRelyingParty: go-oidc, which others wrote, logs in and believes what it gets.
func TestRelyingParty(t *testing.T) {
	w := newWorld(t)
	w.clock.ms.Store(time.Now().UnixMilli())
	added, err := AddClient(t.Context(), w.store, AddClientOptions{Name: "A party", Redirects: []string{"http://127.0.0.1/callback"}})
	must(t, err)
	ctx := oidc.ClientContext(t.Context(), w.web.Client())
	provider, err := oidc.NewProvider(ctx, w.cfg.Issuer)
	must(t, err)
	party := oauth2.Config{
		ClientID: added.Client.ID, ClientSecret: added.Secret, Endpoint: provider.Endpoint(), RedirectURL: callback,
		Scopes: []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess, "dodo:read"},
	}
	verifier := oauth2.GenerateVerifier()
	b := w.browser()
	a := w.get(b, party.AuthCodeURL("state", oidc.Nonce("n\u00fcnce"), oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", w.cfg.Resource)))
	page := a.Header.Get("Location")
	must(t, ignored(w.Approve(ctx, idOf(page))))
	_, q := w.sentTo(w.finish(b, page))
	if q.Get("state") != "state" || q.Get("iss") != w.cfg.Issuer {
		t.Fatal(q)
	}
	token, err := party.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(verifier))
	must(t, err)
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: added.Client.ID}).Verify(ctx, raw)
	must(t, err)
	if id.Subject != "owner" || id.Nonce != "n\u00fcnce" || id.Issuer != w.cfg.Issuer {
		t.Errorf("%+v", id)
	}
	must(t, id.VerifyAccessToken(token.AccessToken))
	var claims struct {
		AuthTime int64 `json:"auth_time"`
	}
	must(t, id.Claims(&claims))
	if claims.AuthTime != w.clock.now().Unix() {
		t.Errorf("%+v", claims)
	}
	if _, err := provider.Verifier(&oidc.Config{ClientID: "another"}).Verify(ctx, raw); err == nil {
		t.Error("it is for another client, too")
	}

	// A key that it has not seen yet is looked up.
	must(t, RotateKey(ctx, w.cfg.Dir))
	token.Expiry = time.Now().Add(-time.Hour)
	next, err := party.TokenSource(ctx, token).Token()
	must(t, err)
	if next.AccessToken == token.AccessToken || next.RefreshToken == token.RefreshToken || !w.holds(next.AccessToken) {
		t.Errorf("%+v", next)
	}
	got := w.login(w.registered(), "scope", "openid")
	if _, err := provider.Verifier(&oidc.Config{SkipClientIDCheck: true}).Verify(ctx, got["id_token"].(string)); err != nil {
		t.Error(err)
	}
	head, idClaims := parts(t, got["id_token"].(string))
	if head["typ"] != "JWT" || idClaims["nonce"] != nil || idClaims["aud"] == w.cfg.Resource {
		t.Errorf("%v %v", head, idClaims)
	}
}

// TestLoginWithoutScript: a person whose browser runs no script follows the links of the
// page.
func TestLoginWithoutScript(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := w.begin(b, w.asking(w.registered()))
	a := w.get(b, page)
	if !strings.Contains(a.body, `<a href="`+page+`">`) {
		t.Fatal(a.body)
	}
	must(t, ignored(w.Approve(context.Background(), idOf(page))))
	if a = w.get(b, page); !strings.Contains(a.body, `<form method="post" action="`+page+`/complete">`) || !strings.Contains(a.body, "<button>") {
		t.Fatal(a.body)
	}
	if a := w.finish(b, page); a.StatusCode != http.StatusSeeOther {
		t.Error(a.StatusCode)
	}
}
