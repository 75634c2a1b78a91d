package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// Bounds of what an authorization request brings along.
const (
	stateBytes = 4096
	nonceBytes = 1024
	scopeBytes = 4096
)

var (
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	verifierForm  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
	scopeForm     = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e ]*$`) // RFC 6749, 3.3
)

// A request is an authorization request that is in order.
type request struct {
	client    state.OAuthClient
	redirect  redirect
	scopes    contract.Scopes
	scope     string // all that is granted, with openid and offline_access
	state     string
	hasState  bool
	nonce     string
	challenge string
}

// authorize begins a login: the owner is asked, and the browser goes to the page that waits.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	form, wrong := authorizeForm(w, r)
	if form == nil {
		s.problem(w, http.StatusBadRequest, wrong.description)
		return
	}
	client, to, err := s.whereTo(r.Context(), form)
	if err != nil {
		s.problemOf(w, r, err)
		return
	}
	// From here on the client is told, at an address that is its own.
	req := request{client: client, redirect: to}
	if len(form["state"]) == 1 && len(form["state"][0]) <= stateBytes {
		req.state, req.hasState = form["state"][0], true
	}
	if wrong == nil {
		wrong = s.check(&req, form)
	}
	if wrong != nil && !req.known() && to.kind == redirectWeb {
		// Anybody can register any site. A link to us must not lead there by itself (RFC 9700, 4.11.2).
		s.problem(w, http.StatusBadRequest, "The client asked in a wrong way: "+wrong.description+".")
		return
	}
	if wrong != nil {
		s.sendBack(w, req, url.Values{"error": {wrong.code}, "error_description": {wrong.description}})
		return
	}
	c, secret, err := s.consents.add(req, s.cfg.Resource, s.accessMode())
	if err != nil {
		s.problemOf(w, r, err)
		return
	}
	http.SetCookie(w, s.cookie(c.ID, secret))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", "/interaction/"+c.ID)
	w.WriteHeader(http.StatusSeeOther)
}

// authorizeForm reads the parameters from where they are. With a refusal and a form, the form
// has at least what tells where to send the refusal.
func authorizeForm(w http.ResponseWriter, r *http.Request) (url.Values, *refusal) {
	if r.Method == http.MethodPost {
		return readForm(w, r, "resource")
	}
	return parseForm(r.URL.RawQuery, "resource")
}

// whereTo finds the client and the redirect. While one of them is not certain, nothing is
// sent anywhere.
func (s *Server) whereTo(ctx context.Context, form url.Values) (o state.OAuthClient, to redirect, err error) {
	ids, redirects := form["client_id"], form["redirect_uri"]
	if len(ids) != 1 || len(redirects) != 1 || ids[0] == "" || len(ids[0]) > paramBytes {
		return o, to, fault.New(contract.InvalidInput, "the request does not say once which client it comes from and where the answer goes")
	}
	if o, err = s.client(ctx, ids[0]); err != nil {
		return o, to, err
	}
	to, why := parseRedirect(redirects[0])
	if why != "" || !fits(o.Redirects, to) {
		return o, to, fault.New(contract.InvalidInput, "the address that the answer would go to is not one that the client registered")
	}
	return o, to, nil
}

// client is the client of an id, as it is to be shown to the owner.
func (s *Server) client(ctx context.Context, id string) (state.OAuthClient, error) {
	row, err := s.cfg.Store.OAuthClient(ctx, id)
	if !strings.HasPrefix(id, "https:") || err == nil && row.Kind != state.ClientMetadata {
		return row, unknown(err)
	}
	if err != nil && !errors.Is(err, contract.NotFound) {
		return row, err
	}
	if s.documents == nil || !isDocumentID(id) {
		return state.OAuthClient{}, unknown(contract.NotFound)
	}
	o, err := s.documents.get(ctx, id)
	o.Created, o.Approved = row.Created, row.Approved
	return o, err
}

// unknown says in words for a browser that nobody knows a client.
func unknown(err error) error {
	if errors.Is(err, contract.NotFound) {
		return fault.New(contract.InvalidInput, "the client is not registered here, or its registration has ended: remove the connection in the client and make it anew")
	}
	return err
}

// check reads the rest of a request.
func (s *Server) check(req *request, form url.Values) *refusal {
	for _, p := range []struct{ name, code string }{
		{"request", "request_not_supported"}, {"request_uri", "request_uri_not_supported"}, {"registration", "registration_not_supported"},
	} {
		if form.Has(p.name) {
			return bad(p.code, p.name+" is not offered")
		}
	}
	switch get := form.Get; {
	case get("response_type") == "":
		return bad("invalid_request", "response_type is missing; it is code")
	case get("response_type") != "code":
		return bad("unsupported_response_type", "response_type is code")
	case get("response_mode") != "" && get("response_mode") != "query":
		return bad("invalid_request", "response_mode is query")
	case form.Has("state") && !req.hasState, len(get("nonce")) > nonceBytes:
		return bad("invalid_request", "state or nonce is too long")
	case get("code_challenge") == "":
		return bad("invalid_request", "code_challenge is missing: PKCE is needed")
	case get("code_challenge_method") != "S256":
		return bad("invalid_request", "code_challenge_method is S256")
	case !challengeForm.MatchString(get("code_challenge")):
		return bad("invalid_request", "code_challenge is 43 characters of base64url")
	case len(get("scope")) > scopeBytes || !scopeForm.MatchString(get("scope")):
		return bad("invalid_scope", "scope is a list of words with spaces between")
	}
	for _, asked := range form["resource"] {
		if !s.isResource(asked) {
			return bad("invalid_target", "resource is "+s.cfg.Resource)
		}
	}
	if wrong := checkPrompt(form.Get("prompt")); wrong != nil {
		return wrong
	}
	req.nonce, req.challenge = form.Get("nonce"), form.Get("code_challenge")
	req.scopes, req.scope = grantable(form.Get("scope"))
	return nil
}

// checkPrompt reads what a client asks the server to show. The owner is asked each time
// whatever it says, so a login that must show nothing cannot be.
func checkPrompt(prompt string) *refusal {
	words := strings.Fields(prompt)
	if !slices.Contains(words, "none") {
		return nil
	}
	if len(words) > 1 {
		return bad("invalid_request", "prompt has none and something else")
	}
	return bad("consent_required", "the owner is asked each time")
}

// grantable is what can be granted of what was asked for. Words that are not known have no
// effect; without one of dodo's own it is reading.
func grantable(asked string) (contract.Scopes, string) {
	scopes := dodoScopes(asked)
	if len(scopes) == 0 {
		scopes = contract.NewScopes(contract.ScopeRead)
	}
	return scopes, strings.Join(append(scopes.Words(), extraScopes(asked)...), " ")
}

// sendBack sends the browser to the client with an answer. It always says who answers (RFC
// 9207).
func (s *Server) sendBack(w http.ResponseWriter, req request, answer url.Values) {
	if req.hasState {
		answer.Set("state", req.state)
	}
	answer.Set("iss", s.cfg.Issuer)
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", req.redirect.with(answer))
	w.WriteHeader(http.StatusSeeOther)
}

func (s *Server) accessMode() contract.AccessMode {
	if s.cfg.AccessMode == nil {
		return contract.AccessManaged
	}
	return s.cfg.AccessMode()
}
