package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// parts takes a token apart without looking whether it holds.
func parts(t testing.TB, token string) (head, claims map[string]any) {
	t.Helper()
	for i, part := range strings.Split(token, ".")[:2] {
		raw, err := base64.RawURLEncoding.DecodeString(part)
		must(t, err)
		out := map[string]any{}
		must(t, json.Unmarshal(raw, &out))
		if i == 0 {
			head = out
		} else {
			claims = out
		}
	}
	return head, claims
}

// signed signs claims with the key that is in use, under a header of the test's choice.
func signed(t testing.TB, key any, alg jose.SignatureAlgorithm, id, typ string, claims map[string]any) string {
	t.Helper()
	o := &jose.SignerOptions{}
	if typ != "" {
		o.WithType(jose.ContentType(typ))
	}
	if id != "" {
		o.WithHeader("kid", id)
	}
	by, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, o)
	must(t, err)
	raw, err := json.Marshal(claims)
	must(t, err)
	x, err := by.Sign(raw)
	must(t, err)
	out, err := x.CompactSerialize()
	must(t, err)
	return out
}

// TestAccessTokenClaims: an access token says what the contract says.
func TestAccessTokenClaims(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	head, claims := parts(t, w.login(client)["access_token"].(string))
	if len(head) != 3 || head["alg"] != "ES256" || head["typ"] != "at+jwt" || w.set(t).all[head["kid"].(string)] == nil {
		t.Errorf("%v", head)
	}
	c, _ := w.store.Grants(t.Context())
	want := map[string]any{
		"iss": w.cfg.Issuer, "aud": w.cfg.Resource, "sub": "owner", "client_id": client, "scope": "dodo:read dodo:write", "exp": float64(w.clock.now().Add(600 * time.Second).Unix()),
		"iat": float64(w.clock.now().Unix()), "dodo_grant": c[0].ID, "dodo_ws": "installation", "dodo_auth": 2.0, "jti": claims["jti"],
	}
	if !maps.Equal(claims, want) || claims["jti"] == "" {
		t.Errorf("%v", claims)
	}
}

func (w *world) set(t testing.TB) *keySet {
	t.Helper()
	set, err := w.keys.get()
	must(t, err)
	return set
}

// TestVerifyRefusals is the table of tokens that let nobody in.
func TestVerifyRefusals(t *testing.T) {
	w := newWorld(t)
	client := w.registered()
	got := w.login(client, "scope", "openid dodo:read dodo:write")
	token := got["access_token"].(string)
	_, claims := parts(t, token)
	private, id := w.private(t)
	with := func(name string, value any) map[string]any {
		c := maps.Clone(claims)
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return c
	}
	good := func(c map[string]any) string { return signed(t, private, jose.ES256, id, "at+jwt", c) }
	if !w.holds(good(claims)) {
		t.Fatal("the test signs wrongly")
	}
	now := w.clock.now()
	foreign, foreignID := newWorld(t).private(t)
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	must(t, err)
	b64 := base64.RawURLEncoding.EncodeToString
	body := strings.Split(token, ".")[1]
	none := b64([]byte(`{"alg":"none","typ":"at+jwt","kid":"`+id+`"}`)) + "." + body + "."
	symmetric := func(key []byte) string {
		in := b64([]byte(`{"alg":"HS256","typ":"at+jwt","kid":"`+id+`"}`)) + "." + body
		m := hmac.New(sha256.New, key)
		m.Write([]byte(in))
		return in + "." + b64(m.Sum(nil))
	}
	embedded, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: foreign}, (&jose.SignerOptions{EmbedJWK: true}).WithType("at+jwt"))
	must(t, err)
	raw, _ := json.Marshal(claims)
	x, err := embedded.Sign(raw)
	must(t, err)
	ownKey, err := x.CompactSerialize()
	must(t, err)
	other := w.login(w.registered())
	_, otherClaims := parts(t, other["access_token"].(string))
	section := strings.Split(token, ".")
	for name, token := range map[string]string{
		"nothing":                  "",
		"a word":                   "x",
		"two dots":                 "..",
		"a refresh token":          got["refresh_token"].(string),
		"an id token":              got["id_token"].(string),
		"alg none":                 none,
		"alg none, signed":         none + section[2],
		"HS256 with the key's DER": symmetric(public),
		"HS256 with its kid":       symmetric([]byte(id)),
		"another installation":     signed(t, foreign, jose.ES256, foreignID, "at+jwt", claims),
		"another key, our kid":     signed(t, foreign, jose.ES256, id, "at+jwt", claims),
		"a key that it brings":     ownKey,
		"no kid":                   signed(t, private, jose.ES256, "", "at+jwt", claims),
		"a path as kid":            signed(t, private, jose.ES256, "../signing.json", "at+jwt", claims),
		"no typ":                   signed(t, private, jose.ES256, id, "", claims),
		"typ JWT":                  signed(t, private, jose.ES256, id, "JWT", claims),
		"typ in capitals":          signed(t, private, jose.ES256, id, "AT+JWT", claims),
		"a changed payload":        section[0] + "." + b64([]byte(strings.Replace(string(raw), "dodo:read", "dodo:exec", 1))) + "." + section[2],
		"a cut signature":          token[:len(token)-4],
		"four parts":               token + ".x",
		"JSON form":                x.FullSerialize(),
		"a space before":           " " + token,
		"very long":                token + strings.Repeat("A", tokenBytes),
		"another issuer":           good(with("iss", "https://other.example")),
		"the issuer and a slash":   good(with("iss", w.cfg.Issuer+"/")),
		"no issuer":                good(with("iss", nil)),
		"another audience":         good(with("aud", "https://other.example/mcp")),
		"the issuer as audience":   good(with("aud", w.cfg.Issuer)),
		"a list of audiences":      good(with("aud", []string{w.cfg.Resource})),
		"no audience":              good(with("aud", nil)),
		"the client as audience":   good(with("aud", client)),
		"expired":                  good(with("exp", now.Unix())),
		"no end":                   good(with("exp", nil)),
		"an end in words":          good(with("exp", "9999999999")),
		"issued in the future":     good(with("iat", now.Add(leeway+time.Second).Unix())),
		"another subject":          good(with("sub", "root")),
		"an older marker":          good(with("dodo_auth", 1)),
		"no marker":                good(with("dodo_auth", nil)),
		"bound to a workspace":     good(with("dodo_ws", "ws_0123456789abcdef0123")),
		"another client":           good(with("client_id", "dodo-client-000000000000")),
		"another client's grant":   good(with("dodo_grant", otherClaims["dodo_grant"])),
		"no such grant":            good(with("dodo_grant", "grant_00000000000000000000")),
		"no grant":                 good(with("dodo_grant", nil)),
	} {
		if c, err := w.Verify(t.Context(), token); !errors.Is(err, contract.AuthRequired) || c.Grant != "" {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
	// More than was granted is not given, and a clock that was ahead locks nobody out.
	c, err := w.Verify(t.Context(), good(with("scope", "dodo:read dodo:exec")))
	if err != nil || len(c.Scopes) != 1 || c.Scopes[0] != contract.ScopeRead {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := w.Verify(t.Context(), good(with("scope", ""))); err != nil || len(c.Scopes) != 0 {
		t.Errorf("%+v %v", c, err)
	}
	if !w.holds(good(with("iat", now.Add(leeway).Unix()))) {
		t.Error("a clock that was 90 s ahead locks clients out")
	}
}

// TestClockAhead: a token from a clock that was 90 s ahead holds, and ends in its time.
func TestClockAhead(t *testing.T) {
	w := newWorld(t)
	w.clock.advance(leeway)
	got := w.login(w.registered())
	w.clock.advance(-leeway)
	if !w.holds(got["access_token"]) {
		t.Error("it does not hold")
	}
	w.clock.advance(leeway + tokenLife)
	if w.holds(got["access_token"]) {
		t.Error("it does not end")
	}
}

// TestChallenge: what is refused says where to go, first and absolutely, and nothing breaks
// out of it.
func TestChallenge(t *testing.T) {
	w := newWorld(t)
	where := `Bearer resource_metadata="` + w.cfg.Issuer + `/.well-known/oauth-protected-resource/mcp", scope="dodo:read dodo:write dodo:exec"`
	if got := w.Challenge(nil); got != where {
		t.Error(got)
	}
	_, err := w.Verify(t.Context(), "x")
	if got := w.Challenge(fault.From(err)); got != where+`, error="invalid_token", error_description="the access token is not valid: it is no token of this server"` {
		t.Error(got)
	}
	if got := w.Challenge(fault.New(contract.AuthRequired, "a\"b\\c\r\nX: \u00fc")); !strings.HasSuffix(got, `error_description="a'b'c''X: '"`) {
		t.Error(got)
	}
}

// FuzzToken: nothing but a token that we signed lets in, and nothing breaks.
func FuzzToken(f *testing.F) {
	w := newWorld(f)
	token := w.login(w.registered())["access_token"].(string)
	for _, s := range []string{"", "..", token, token[:len(token)-1], strings.Replace(token, ".", "..", 1), "eyJhbGciOiJub25lIn0.e30.", `{"payload":"","signatures":[]}`} {
		f.Add(s)
	}
	payload := token[:strings.LastIndexByte(token, '.')]
	f.Fuzz(func(t *testing.T, s string) {
		// A signature may be written in more than one way; what it is of may not.
		if _, err := w.Verify(t.Context(), s); err == nil && !strings.HasPrefix(s, payload+".") {
			t.Fatalf("%q let in", s)
		}
	})
}

// FuzzCaller: what is read is what was written.
func FuzzCaller(f *testing.F) {
	for _, c := range []Caller{{Grant: "g", Client: "https://a.example/c", Expires: time.Unix(1, 0)}, {Grant: "g", Client: "c", Scopes: contract.NewScopes(contract.AllScopes...)}} {
		f.Add(c.String())
	}
	f.Add("oauth g 1 dodo:read,dodo:read c")
	f.Add("oauth  1  c")
	f.Add("local-stdio")
	f.Fuzz(func(t *testing.T, s string) {
		if c, ok := ParseCaller(s); ok && c.String() != s {
			t.Fatalf("%q is read as %+v", s, c)
		} else if !ok && (c.Grant != "" || c.Scopes != nil) {
			t.Fatalf("%q: %+v", s, c)
		}
	})
}

// BenchmarkVerify: a token that comes again, as with every call, and one that comes first.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	token := w.login(w.registered())["access_token"].(string)
	for name, first := range map[string]bool{"again": false, "first": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if first {
					w.set(b).seen.tokens = nil
				}
				if _, err := w.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestSeenTokens: what is remembered is bounded, and goes with the keys.
func TestSeenTokens(t *testing.T) {
	w := newWorld(t)
	w.clock.ms.Store(time.Now().UnixMilli())
	token := w.login(w.registered())["access_token"]
	was := w.set(t)
	for i := range mostSeen + 10 {
		was.seen.put(sha256.Sum256([]byte{byte(i), byte(i >> 8)}), readToken{})
	}
	if len(was.seen.tokens) > mostSeen || !w.holds(token) || !w.holds(token) {
		t.Errorf("%d are remembered", len(was.seen.tokens))
	}
	must(t, RotateKey(t.Context(), w.cfg.Dir))
	if now := w.set(t); now == was || now.seen.tokens != nil || !w.holds(token) {
		t.Error("what was remembered outlives the keys")
	}
	keys := w.stored(t)
	keys.Keys = keys.Keys[:1]
	w.write(t, keys)
	if w.holds(token) {
		t.Error("a token outlives the key that signed it")
	}
}
