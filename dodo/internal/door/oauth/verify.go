package oauth

import (
	"context"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// tokenBytes bounds what is looked at as a token.
const tokenBytes = 8 << 10

func notValid(why string) error {
	return fault.New(contract.AuthRequired, "the access token is not valid: %s", why).WithHint("refresh it, or log in again in the client")
}

// Verify says who comes with a bearer token: its signature, type, issuer, audience and times
// hold, and its grant and its client are live now. AUTH_REQUIRED otherwise; any other code
// says that dodo could not look.
func (s *Server) Verify(ctx context.Context, bearer string) (Caller, error) {
	set, err := s.keys.get()
	if err != nil {
		return Caller{}, err
	}
	now := s.now()
	c, err := s.claims(set, bearer, now)
	if err != nil {
		return Caller{}, err
	}
	switch {
	case c.Audience != s.cfg.Resource:
		return Caller{}, notValid("it is for another resource")
	case now.Unix() >= c.Expires:
		return Caller{}, notValid("it has expired")
	case time.Unix(c.Issued, 0).After(now.Add(leeway)):
		return Caller{}, notValid("it was issued in the future")
	}
	g, err := s.cfg.Store.Grant(ctx, c.Grant)
	if err != nil {
		return Caller{}, err
	}
	if g.Client != c.Client || g.Resource != s.cfg.Resource {
		return Caller{}, notValid("it does not fit its login")
	}
	return Caller{Grant: g.ID, Client: g.Client, Scopes: dodoScopes(c.Scope).And(g.Scopes), Expires: time.Unix(c.Expires, 0).UTC()}, nil
}

// claims reads a token that this installation signed as an access token, also one that has
// expired.
func (s *Server) claims(set *keySet, token string, now time.Time) (c accessClaims, err error) {
	if len(token) > tokenBytes || strings.Count(token, ".") != 2 {
		return c, notValid("it is no token of this server")
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(signed.Signatures) != 1 {
		return c, notValid("it is no token of this server")
	}
	head := signed.Signatures[0].Protected
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); typ != string(typeAccess) || len(head.ExtraHeaders) != 1 || head.JSONWebKey != nil {
		return c, notValid("it is no access token")
	}
	key := set.all[head.KeyID]
	if key == nil || key.over(now) {
		return c, notValid("it was signed with a key that is not in use")
	}
	raw, err := signed.Verify(key.public)
	if err != nil {
		return c, notValid("its signature is wrong")
	}
	if jsonv2.Unmarshal(raw, &c) != nil || c.Issuer != s.cfg.Issuer || c.Subject != subject || c.Auth != authVersion || c.Workspace != binding {
		return c, notValid("it is no token of this server")
	}
	return c, nil
}
