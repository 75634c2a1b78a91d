package oauth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"mime"
	"net/http"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// secretMark begins the secret of a client, so that one that was left somewhere is known for
// what it is.
const secretMark = "dodo_cs_"

// newID is the id of a client.
func newID(prefix string) string {
	b := make([]byte, 6)
	rand.Read(b)
	return prefix + hex.EncodeToString(b)
}

// withSecret gives a client that needs one a secret, and keeps the hash in it.
func withSecret(o *state.OAuthClient) (secret string) {
	if o.AuthMethod == methodNone {
		return ""
	}
	secret = secretMark + random(secretBytes)
	o.Secret = hashOf(secret)
	return secret
}

// register lets a client register itself (RFC 7591). It can do nothing until the owner has
// said yes to a login of it.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata", "the body must be application/json")
		return
	}
	raw, err := readBody(w, r)
	if err != nil {
		refuse(w, http.StatusRequestEntityTooLarge, "invalid_client_metadata", "the body is too large or broke off")
		return
	}
	d := clientData{}
	if jsonv2.Unmarshal(raw, &d) != nil {
		refuse(w, http.StatusBadRequest, "invalid_client_metadata", "the body is not the JSON of a registration")
		return
	}
	if d.Method == "" {
		d.Method = methodBasic
	}
	o, wrong := d.client()
	if wrong != nil {
		s.fail(w, r, wrong, "")
		return
	}
	o.ID, o.Kind = newID("dcr-"), state.ClientDynamic
	secret := withSecret(&o)
	if o, err = s.cfg.Store.AddOAuthClient(r.Context(), o); err != nil {
		s.fail(w, r, err, "")
		return
	}
	types := []string{typeCode}
	if o.Refresh {
		types = append(types, typeRefresh)
	}
	out := map[string]any{
		"client_id": o.ID, "client_id_issued_at": o.Created.Unix(), "client_name": o.Name, "redirect_uris": o.Redirects,
		"token_endpoint_auth_method": o.AuthMethod, "grant_types": types, "response_types": []string{"code"}, "application_type": o.Application,
	}
	if secret != "" {
		out["client_secret"], out["client_secret_expires_at"] = secret, 0
	}
	answer(w, http.StatusCreated, out)
}

// AddClientOptions describe a client that the owner registers.
type AddClientOptions struct {
	Name      string
	Redirects []string
	Public    bool // no secret: PKCE alone
}

// AddedClient is a registered client and its secret, which nobody can read again.
type AddedClient struct {
	Client state.OAuthClient
	Secret string // empty for a public one
}

// AddClient registers a client for the owner. Running servers know it at once.
func AddClient(ctx context.Context, store *state.Store, o AddClientOptions) (AddedClient, error) {
	d := clientData{Name: o.Name, Redirects: o.Redirects, Method: methodBasic}
	if o.Public {
		d.Method = methodNone
	}
	c, wrong := d.client()
	if wrong != nil {
		return AddedClient{}, fault.New(contract.InvalidInput, "%s", wrong.description).
			WithHint("--redirect-uri takes https addresses, http on 127.0.0.1, [::1] or localhost, and schemes of a program's own")
	}
	c.ID, c.Kind = newID("dodo-client-"), state.ClientStatic
	secret := withSecret(&c)
	c, err := store.AddOAuthClient(ctx, c)
	return AddedClient{Client: c, Secret: secret}, err
}
