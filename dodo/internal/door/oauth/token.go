package oauth

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
)

// How long things hold.
const (
	tokenLife   = 10 * time.Minute // access and id tokens
	codeLife    = time.Minute
	consentLife = 5 * time.Minute
	// leeway is how far behind its past self a clock may be: it was ahead and was set.
	leeway = 90 * time.Second
)

// The types of tokens. One is never taken for the other.
const (
	typeAccess jose.ContentType = "at+jwt"
	typeID     jose.ContentType = "JWT"
)

// The fixed values of claims (contract 017).
const (
	subject     = "owner"
	binding     = "installation" // in place of the workspace that older tokens were bound to
	authVersion = 2
)

// accessClaims are what an access token says.
type accessClaims struct {
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
	Subject   string `json:"sub"`
	Client    string `json:"client_id"`
	Scope     string `json:"scope"`
	Expires   int64  `json:"exp"`
	Issued    int64  `json:"iat"`
	ID        string `json:"jti"`
	Grant     string `json:"dodo_grant"`
	Workspace string `json:"dodo_ws"`
	Auth      int    `json:"dodo_auth"`
}

// idClaims are what an id token says.
type idClaims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"`
	Subject  string `json:"sub"`
	Expires  int64  `json:"exp"`
	Issued   int64  `json:"iat"`
	AuthTime int64  `json:"auth_time"`
	Nonce    string `json:"nonce,omitempty"`
	AtHash   string `json:"at_hash"`
}

// accessToken makes a token for a grant. scope is that of the token: never more than the
// grant's.
func (s *Server) accessToken(key *signingKey, g state.Grant, scope string) (string, error) {
	now := s.now()
	return sign(key.tokens, accessClaims{
		Issuer: s.cfg.Issuer, Audience: s.cfg.Resource, Subject: subject, Client: g.Client, Scope: scope,
		Expires: now.Add(tokenLife).Unix(), Issued: now.Unix(), ID: random(16),
		Grant: g.ID, Workspace: binding, Auth: authVersion,
	})
}

func (s *Server) idToken(key *signingKey, g state.Grant, nonce, access string) (string, error) {
	now, half := s.now(), sha256.Sum256([]byte(access))
	return sign(key.ids, idClaims{
		Issuer: s.cfg.Issuer, Audience: g.Client, Subject: subject, Expires: now.Add(tokenLife).Unix(), Issued: now.Unix(),
		AuthTime: g.Created.Unix(), Nonce: nonce, AtHash: base64.RawURLEncoding.EncodeToString(half[:16]),
	})
}

func sign(by jose.Signer, claims any) (string, error) {
	raw, err := jsonv2.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := by.Sign(raw)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func thumbprint(key jose.JSONWebKey) (string, error) {
	sum, err := key.Thumbprint(crypto.SHA256)
	return base64.RawURLEncoding.EncodeToString(sum), err
}

// random is n random bytes in base64url.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// secretBytes is the size of secrets: codes, refresh tokens, secrets of clients and of
// browsers.
const secretBytes = 32

// hashOf is the form in which a secret is kept.
func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// challengeOf is S256 of a verifier (RFC 7636).
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// dodoScopes are the scopes in a list that are dodo's own; others are of no effect.
func dodoScopes(scope string) contract.Scopes {
	var list []contract.Scope
	for _, w := range strings.Fields(scope) {
		list = append(list, contract.Scope(w))
	}
	return contract.NewScopes(list...)
}
