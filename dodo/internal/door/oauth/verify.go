package oauth

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
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
// expired. What it says of a token is kept: looking at a signature takes longer than all else.
func (s *Server) claims(set *keySet, token string, now time.Time) (accessClaims, error) {
	if len(token) > tokenBytes {
		return accessClaims{}, notOurs()
	}
	sum := sha256.Sum256([]byte(token))
	x, known := set.seen.get(sum)
	if !known {
		var err error
		if x, err = s.read(set, token); err != nil {
			return accessClaims{}, err
		}
		set.seen.put(sum, x)
	}
	if x.key.over(now) {
		return accessClaims{}, notValid("it was signed with a key that is not in use")
	}
	return x.claims, nil
}

func notOurs() error { return notValid("it is no token of this server") }

// read looks at a token's form, header and signature, and at the claims that never change.
func (s *Server) read(set *keySet, token string) (x readToken, err error) {
	if strings.Count(token, ".") != 2 {
		return x, notOurs()
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || len(signed.Signatures) != 1 {
		return x, notOurs()
	}
	head := signed.Signatures[0].Protected
	if typ, _ := head.ExtraHeaders[jose.HeaderType].(string); typ != string(typeAccess) || len(head.ExtraHeaders) != 1 || head.JSONWebKey != nil {
		return x, notValid("it is no access token")
	}
	if x.key = set.all[head.KeyID]; x.key == nil {
		return x, notValid("it was signed with a key that is not in use")
	}
	raw, err := signed.Verify(x.key.public)
	if err != nil {
		return x, notValid("its signature is wrong")
	}
	if c := &x.claims; jsonv2.Unmarshal(raw, c) != nil || c.Issuer != s.cfg.Issuer || c.Subject != subject || c.Auth != authVersion || c.Workspace != binding {
		return x, notOurs()
	}
	return x, nil
}

// A readToken is what a token says, and by which key.
type readToken struct {
	claims accessClaims
	key    *signingKey
}

// mostSeen bounds the tokens that are remembered: each live client has one.
const mostSeen = 1024

// seenTokens remembers what tokens say whose signature was found good, by the hash of the
// whole token. It belongs to one state of the keys and goes with it.
type seenTokens struct {
	mu     sync.Mutex // guards the rest
	tokens map[[sha256.Size]byte]readToken
}

func (s *seenTokens) get(sum [sha256.Size]byte) (readToken, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.tokens[sum]
	return x, ok
}

func (s *seenTokens) put(sum [sha256.Size]byte, x readToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= mostSeen || s.tokens == nil {
		s.tokens = map[[sha256.Size]byte]readToken{}
	}
	s.tokens[sum] = x
}
