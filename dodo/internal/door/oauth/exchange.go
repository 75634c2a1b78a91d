package oauth

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// refreshMark begins a refresh token, so that one that was left somewhere is known for what it
// is.
const refreshMark = "dodo_rt_"

// paramBytes bounds codes, tokens and secrets that are shown to us.
const paramBytes = 1024

// token gives tokens for a code or a refresh token.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	form, wrong := readForm(w, r, "resource")
	if wrong != nil {
		s.fail(w, r, wrong, "")
		return
	}
	client, err := s.authenticate(w, r, form)
	if err != nil {
		s.fail(w, r, err, "")
		return
	}
	for _, asked := range form["resource"] {
		if !s.isResource(asked) {
			s.fail(w, r, bad("invalid_target", "resource is "+s.cfg.Resource), "")
			return
		}
	}
	var out map[string]any
	switch form.Get("grant_type") {
	case typeCode:
		out, err = s.forCode(r, client, form)
	case typeRefresh:
		out, err = s.forRefresh(r, client, form)
	case "":
		err = bad("invalid_request", "grant_type is missing")
	default:
		err = bad("unsupported_grant_type", "grant_type is authorization_code or refresh_token")
	}
	if err != nil {
		s.fail(w, r, err, "invalid_grant")
		return
	}
	answer(w, http.StatusOK, out)
}

// authenticate finds the client that a request comes from, and holds it to the secret it has.
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, form url.Values) (o state.OAuthClient, err error) {
	id, secret, basic, wrong := credentials(r, form)
	if wrong != nil {
		return o, wrong
	}
	refused := &refusal{status: http.StatusUnauthorized, code: "invalid_client", description: "the client is not registered here, or its secret is wrong"}
	if basic {
		w.Header().Set("WWW-Authenticate", `Basic realm="dodo"`)
	}
	o, err = s.cfg.Store.OAuthClient(r.Context(), id)
	switch {
	case errors.Is(err, contract.NotFound):
		return o, refused
	case err != nil:
		return o, err
	case o.AuthMethod == methodNone:
		if secret != "" || basic {
			return o, refused
		}
	case secret == "" || subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(o.Secret)) != 1:
		return o, refused
	}
	w.Header().Del("WWW-Authenticate")
	return o, nil
}

// credentials are what a client says of itself, in one place only.
func credentials(r *http.Request, form url.Values) (id, secret string, basic bool, wrong *refusal) {
	id, secret = form.Get("client_id"), form.Get("client_secret")
	if header := r.Header.Values("Authorization"); len(header) > 0 {
		user, pass, ok := r.BasicAuth()
		user, err1 := url.QueryUnescape(user)
		pass, err2 := url.QueryUnescape(pass)
		if !ok || len(header) > 1 || err1 != nil || err2 != nil {
			return "", "", false, bad("invalid_request", "the Authorization header cannot be read")
		}
		if form.Has("client_secret") || id != "" && id != user {
			return "", "", false, bad("invalid_request", "the client says twice who it is")
		}
		id, secret, basic = user, pass, true
	}
	if id == "" || len(id) > paramBytes || len(secret) > paramBytes {
		return "", "", false, bad("invalid_request", "client_id is missing or too long")
	}
	return id, secret, basic, nil
}

func (s *Server) forCode(r *http.Request, client state.OAuthClient, form url.Values) (map[string]any, error) {
	code, verifier := form.Get("code"), form.Get("code_verifier")
	switch {
	case code == "" || len(code) > paramBytes:
		return nil, bad("invalid_request", "code is missing or too long")
	case !verifierForm.MatchString(verifier):
		return nil, bad("invalid_request", "code_verifier is missing, or is not 43 to 128 letters, digits, - . _ ~")
	}
	key, err := s.signing() // before the code is used up
	if err != nil {
		return nil, err
	}
	use := state.CodeUse{Hash: hashOf(code), Client: client.ID, Resource: s.cfg.Resource, Redirect: form.Get("redirect_uri"), Challenge: challengeOf(verifier)}
	var refresh string
	if client.Refresh {
		refresh = refreshMark + random(secretBytes)
		use.Refresh = hashOf(refresh)
	}
	got, err := s.cfg.Store.UseCode(r.Context(), use)
	if err != nil {
		return nil, err
	}
	return s.tokens(key, got, got.Scope, refresh, slices.Contains(strings.Fields(got.Scope), scopeOpenID))
}

func (s *Server) forRefresh(r *http.Request, client state.OAuthClient, form url.Values) (map[string]any, error) {
	token, asked := form.Get("refresh_token"), form.Get("scope")
	switch {
	case token == "" || len(token) > paramBytes:
		return nil, bad("invalid_request", "refresh_token is missing or too long")
	case len(asked) > scopeBytes || !scopeForm.MatchString(asked):
		return nil, bad("invalid_scope", "scope is a list of words with spaces between")
	case !client.Refresh:
		return nil, bad("unauthorized_client", "the client registered without refresh_token")
	}
	key, err := s.signing() // before the token is used up
	if err != nil {
		return nil, err
	}
	next := refreshMark + random(secretBytes)
	narrow := knownScopes(asked)
	got, err := s.cfg.Store.UseRefresh(r.Context(), state.RefreshUse{
		Hash: hashOf(token), Client: client.ID, Resource: s.cfg.Resource, Next: hashOf(next), Scope: narrow,
	})
	if errors.Is(err, contract.Forbidden) {
		return nil, bad("invalid_scope", "scope names more than was granted")
	}
	if err != nil {
		return nil, err
	}
	scope := got.Scope
	if len(narrow) > 0 {
		scope = strings.Join(narrow, " ")
	}
	return s.tokens(key, got, scope, next, false)
}

// knownScopes are the words of a list that mean something here, in our order.
func knownScopes(asked string) []string {
	return append(dodoScopes(asked).Words(), extraScopes(asked)...)
}

// extraScopes are those of a list that are not dodo's own.
func extraScopes(asked string) (list []string) {
	words := strings.Fields(asked)
	for _, extra := range []string{scopeOpenID, scopeOffline} {
		if slices.Contains(words, extra) {
			list = append(list, extra)
		}
	}
	return list
}

// signing is the key that signs now.
func (s *Server) signing() (*signingKey, error) {
	set, err := s.keys.get()
	if err != nil {
		return nil, err
	}
	return set.current, nil
}

func (s *Server) tokens(key *signingKey, got state.Redeemed, scope, refresh string, withID bool) (map[string]any, error) {
	access, err := s.accessToken(key, got.Grant, scope)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(tokenLife.Seconds()), "scope": scope}
	if refresh != "" {
		out["refresh_token"] = refresh
	}
	if withID {
		if out["id_token"], err = s.idToken(key, got.Grant, got.Nonce, access); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// revocation ends a login for its client (RFC 7009), by its refresh token or by an access
// token. A token that is not known, or is another client's, is answered the same.
func (s *Server) revocation(w http.ResponseWriter, r *http.Request) {
	form, wrong := readForm(w, r)
	if wrong != nil {
		s.fail(w, r, wrong, "")
		return
	}
	client, err := s.authenticate(w, r, form)
	if err != nil {
		s.fail(w, r, err, "")
		return
	}
	token := form.Get("token")
	if token == "" || len(token) > tokenBytes {
		s.fail(w, r, bad("invalid_request", "token is missing or too long"), "")
		return
	}
	if strings.HasPrefix(token, refreshMark) {
		err = s.cfg.Store.RevokeRefresh(r.Context(), hashOf(token), client.ID)
	} else if set, unreadable := s.keys.get(); unreadable != nil {
		err = unreadable
	} else if c, notOurs := s.claims(set, token, s.now()); notOurs == nil && c.Client == client.ID {
		err = s.cfg.Store.RevokeByClient(r.Context(), c.Grant, client.ID)
	}
	if err != nil {
		s.fail(w, r, err, "")
		return
	}
	answer(w, http.StatusOK, map[string]any{})
}
