package oauth

import (
	"net/http"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
)

// How a client proves who it is to the token endpoint.
const (
	methodNone  = "none"
	methodPost  = "client_secret_post"
	methodBasic = "client_secret_basic"
)

var methods = []string{methodNone, methodPost, methodBasic}

// The grant types.
const (
	typeCode    = "authorization_code"
	typeRefresh = "refresh_token"
)

// Scopes beside dodo's own.
const (
	scopeOpenID  = "openid"
	scopeOffline = "offline_access"
)

// serverDocument describes the authorization server (RFC 8414, OpenID Connect Discovery).
func (s *Server) serverDocument() []byte {
	at := func(path string) string { return s.cfg.Issuer + path }
	d := map[string]any{
		"issuer":                                         s.cfg.Issuer,
		"authorization_endpoint":                         at("/auth"),
		"token_endpoint":                                 at("/token"),
		"revocation_endpoint":                            at("/token/revocation"),
		"jwks_uri":                                       at("/jwks"),
		"scopes_supported":                               append(contract.NewScopes(contract.AllScopes...).Words(), scopeOffline),
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{typeCode, typeRefresh},
		"token_endpoint_auth_methods_supported":          methods,
		"revocation_endpoint_auth_methods_supported":     methods,
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"protected_resources":                            []string{s.cfg.Resource},
		"subject_types_supported":                        []string{"public"},
		"id_token_signing_alg_values_supported":          []string{"ES256"},
		"claims_supported":                               []string{"iss", "aud", "sub", "exp", "iat", "auth_time", "nonce", "at_hash"},
		"claims_parameter_supported":                     false,
		"request_parameter_supported":                    false,
		"request_uri_parameter_supported":                false,
	}
	if s.cfg.Registration {
		d["registration_endpoint"] = at("/register")
	}
	if s.documents != nil {
		d["client_id_metadata_document_supported"] = true
	}
	return encoded(d)
}

// resourceDocument describes the resource (RFC 9728).
func (s *Server) resourceDocument() []byte {
	return encoded(map[string]any{
		"resource":                 s.cfg.Resource,
		"authorization_servers":    []string{s.cfg.Issuer},
		"scopes_supported":         contract.NewScopes(contract.AllScopes...).Words(),
		"bearer_methods_supported": []string{"header"},
		"resource_name":            "dodo",
	})
}

func encoded(v any) []byte {
	raw, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		panic(err) // a map of strings
	}
	return raw
}

// serve answers with a document that may be kept for a minute.
func serve(document []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeDocument(w, document) }
}

func writeDocument(w http.ResponseWriter, document []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=60")
	w.Write(document)
}

// jwks answers with the keys that tokens may be signed with.
func (s *Server) jwks(w http.ResponseWriter, r *http.Request) {
	set, err := s.keys.get()
	if err != nil {
		s.fail(w, r, err, "server_error")
		return
	}
	writeDocument(w, encoded(set.published(s.now())))
}
