package state_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/sqlitedb"
)

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func client(id string, kind state.ClientKind) state.OAuthClient {
	return state.OAuthClient{ID: id, Kind: kind, Name: "A client", Redirects: []string{"https://a.example/cb"}, AuthMethod: "none", Refresh: true, Application: "native"}
}

const resource = "http://127.0.0.1:21730/mcp"

// loggedIn is a grant of a client for reading and writing, with the code "code-<n>".
func loggedIn(t testing.TB, s *state.Store, c state.OAuthClient, code string, expires time.Time) state.Grant {
	t.Helper()
	g, err := s.AddGrant(t.Context(), state.Login{
		Client: c, Scopes: contract.NewScopes(contract.ScopeRead, contract.ScopeWrite), Resource: resource,
		Code: state.Code{Hash: sum(code), Redirect: c.Redirects[0], Challenge: "challenge", Scope: "openid dodo:read dodo:write", Nonce: "n", Expires: expires},
	})
	must(t, err)
	return g
}

// world is a store with one client and a grant of it.
func world(t testing.TB) (*state.Store, *clock, state.OAuthClient, state.Grant) {
	t.Helper()
	c := newClock()
	s := open(t, place(t), c)
	o, err := s.AddOAuthClient(t.Context(), client("dodo-client-1", state.ClientStatic))
	must(t, err)
	return s, c, o, loggedIn(t, s, o, "code", c.now().Add(time.Minute))
}

func run(t testing.TB, s *state.Store, query string, args ...any) error {
	t.Helper()
	return s.Write(t.Context(), func(ctx context.Context, c *sqlitedb.Conn) error {
		_, err := c.Exec(ctx, query, args...)
		return err
	})
}

// TestWaitingClients: what registers itself is bounded in number and in time until the owner
// says yes, and never counts after that.
func TestWaitingClients(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	_, err := s.AddOAuthClient(ctx, client("dodo-client-1", state.ClientStatic))
	must(t, err)
	_, err = s.AddOAuthClient(ctx, client("dodo-client-1", state.ClientStatic))
	refused(t, err, contract.Conflict)
	for i := range state.MostWaiting {
		_, err := s.AddOAuthClient(ctx, client(fmt.Sprintf("dcr-%d", i), state.ClientDynamic))
		must(t, err)
	}
	_, err = s.AddOAuthClient(ctx, client("dcr-more", state.ClientDynamic))
	refused(t, err, contract.ResourceLimit)
	_, err = s.AddOAuthClient(ctx, client("dodo-client-2", state.ClientStatic)) // the owner's own
	must(t, err)
	known, err := s.OAuthClient(ctx, "dcr-0")
	must(t, err)
	loggedIn(t, s, known, "code", c.now().Add(time.Minute))
	_, err = s.AddOAuthClient(ctx, client("dcr-more", state.ClientDynamic))
	must(t, err)

	second, err := s.OAuthClient(ctx, "dcr-1")
	must(t, err)
	c.advance(state.WaitingLife)
	_, err = s.OAuthClient(ctx, "dcr-1")
	refused(t, err, contract.NotFound)
	list, err := s.OAuthClients(ctx)
	must(t, err)
	var ids []string
	for _, o := range list {
		ids = append(ids, o.ID)
	}
	if strings.Join(ids, " ") != "dcr-0 dodo-client-1 dodo-client-2" || list[0].Approved.IsZero() {
		t.Errorf("%v", ids)
	}
	loggedIn(t, s, second, "code2", c.now().Add(time.Minute)) // a login that it began in time
	_, err = s.OAuthClient(ctx, "dcr-1")
	must(t, err)
	third := second
	third.ID = "dcr-2"
	c.advance(state.WaitingLife)
	must(t, s.Prune(ctx, state.Retention{Audit: time.Hour, Idempotency: time.Hour}))
	_, err = s.AddGrant(ctx, state.Login{Client: third, Resource: resource, Code: state.Code{Hash: "x", Expires: c.now()}})
	refused(t, err, contract.NotFound)
}

// TestMetadataClients: the row is what the owner was shown last, and one that was deleted
// meanwhile does not come back.
func TestMetadataClients(t *testing.T) {
	ctx, c := t.Context(), newClock()
	s := open(t, place(t), c)
	id := "https://a.example/client.json"
	loggedIn(t, s, client(id, state.ClientMetadata), "code", c.now().Add(time.Minute))
	row, err := s.OAuthClient(ctx, id)
	must(t, err)
	row.Name = "Another name"
	loggedIn(t, s, row, "code2", c.now().Add(time.Minute))
	row, err = s.OAuthClient(ctx, id)
	must(t, err)
	if row.Name != "Another name" {
		t.Errorf("%+v", row)
	}
	must(t, s.DeleteOAuthClient(ctx, id))
	_, err = s.AddGrant(ctx, state.Login{Client: row, Resource: resource, Code: state.Code{Hash: "x", Expires: c.now()}})
	refused(t, err, contract.NotFound)
	_, err = s.AddOAuthClient(ctx, client(id, state.ClientStatic))
	must(t, err)
	_, err = s.AddGrant(ctx, state.Login{Client: client(id, state.ClientMetadata), Resource: resource, Code: state.Code{Hash: "x", Expires: c.now()}})
	refused(t, err, contract.NotFound) // another kind has the id
}

// TestGrantCounts: a grant is live only with its marker, its client and its time, and what
// was granted cannot be made more.
func TestGrantCounts(t *testing.T) {
	for name, breaks := range map[string]func(*testing.T, *state.Store, *clock, state.Grant){
		"revoked": func(t *testing.T, s *state.Store, _ *clock, g state.Grant) {
			r, err := s.RevokeGrant(t.Context(), g.ID)
			must(t, err)
			if r.Revoked.IsZero() || r.Reason == "" {
				t.Errorf("%+v", r)
			}
			again, err := s.RevokeGrant(t.Context(), g.ID)
			if err != nil || !again.Revoked.Equal(r.Revoked) {
				t.Errorf("%+v %v", again, err)
			}
			if run(t, s, "UPDATE grants SET revoked = NULL, reason = ''") == nil {
				t.Error("a revoked grant came back")
			}
		},
		"over": func(_ *testing.T, _ *state.Store, c *clock, _ state.Grant) { c.advance(state.GrantLife) },
		"without marker": func(t *testing.T, s *state.Store, _ *clock, g state.Grant) {
			must(t, run(t, s, "DELETE FROM meta WHERE key = ?", "identity-grant:"+g.ID))
		},
		"another marker": func(t *testing.T, s *state.Store, _ *clock, g state.Grant) {
			must(t, run(t, s, "UPDATE meta SET value = '1' WHERE key = ?", "identity-grant:"+g.ID))
		},
		"without client": func(t *testing.T, s *state.Store, _ *clock, _ state.Grant) {
			must(t, run(t, s, "DELETE FROM clients"))
		},
		"deleted client": func(t *testing.T, s *state.Store, _ *clock, g state.Grant) {
			must(t, s.DeleteOAuthClient(t.Context(), g.Client))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, _, g := world(t)
			live, err := s.Grant(t.Context(), g.ID)
			must(t, err)
			if live.Client != "dodo-client-1" || len(live.Scopes) != 2 || live.Resource != resource || !live.Expires.Equal(c.now().Add(state.GrantLife)) {
				t.Errorf("%+v", live)
			}
			if run(t, s, "UPDATE grants SET scopes = 'dodo:read dodo:write dodo:exec'") == nil {
				t.Error("a grant became more")
			}
			breaks(t, s, c, g)
			_, err = s.Grant(t.Context(), g.ID)
			refused(t, err, contract.AuthRequired)
			_, err = s.UseCode(t.Context(), state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge"})
			refused(t, err, contract.AuthRequired)
		})
	}
	s, _, _, _ := world(t)
	_, err := s.Grant(t.Context(), "grant_none")
	refused(t, err, contract.AuthRequired)
	_, err = s.RevokeGrant(t.Context(), "grant_none")
	refused(t, err, contract.NotFound)
	must(t, run(t, s, `INSERT INTO grants VALUES ('g', 'dodo-client-1', 'dodo:read dodo:everything', 'r', 1, 9999999999999, NULL, '')`))
	must(t, run(t, s, `INSERT INTO meta VALUES ('identity-grant:g', '2')`))
	g, err := s.Grant(t.Context(), "g")
	if err != nil || len(g.Scopes) != 0 {
		t.Errorf("%+v %v", g, err)
	}
}

// TestCodeIsUsedOnce: the first use is the only one, also a bad one, and a second one ends
// the grant.
func TestCodeIsUsedOnce(t *testing.T) {
	good := state.CodeUse{Resource: resource, Hash: sum("code"), Client: "dodo-client-1", Redirect: "https://a.example/cb", Challenge: "challenge", Refresh: sum("refresh")}
	for name, change := range map[string]func(*state.CodeUse, *clock){
		"another client":   func(u *state.CodeUse, _ *clock) { u.Client = "dodo-client-2" },
		"another redirect": func(u *state.CodeUse, _ *clock) { u.Redirect += "/" },
		"another verifier": func(u *state.CodeUse, _ *clock) { u.Challenge = "other" },
		"another server":   func(u *state.CodeUse, _ *clock) { u.Resource = "https://other.example/mcp" },
		"no verifier":      func(u *state.CodeUse, _ *clock) { u.Challenge = "" },
		"too late":         func(_ *state.CodeUse, c *clock) { c.advance(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			s, c, _, g := world(t)
			bad := good
			change(&bad, c)
			_, err := s.UseCode(t.Context(), bad)
			refused(t, err, contract.AuthRequired)
			_, err = s.Grant(t.Context(), g.ID)
			must(t, err)
			_, err = s.UseCode(t.Context(), good)
			refused(t, err, contract.AuthRequired)
			_, err = s.Grant(t.Context(), g.ID)
			refused(t, err, contract.AuthRequired)
		})
	}
	s, _, _, g := world(t)
	_, err := s.UseCode(t.Context(), state.CodeUse{Resource: resource, Hash: sum("guess"), Client: g.Client})
	refused(t, err, contract.AuthRequired)
	r, err := s.UseCode(t.Context(), good)
	must(t, err)
	if r.Grant.ID != g.ID || r.Scope != "openid dodo:read dodo:write" || r.Nonce != "n" {
		t.Errorf("%+v", r)
	}
	_, err = s.UseCode(t.Context(), good)
	refused(t, err, contract.AuthRequired)
	_, err = s.UseRefresh(t.Context(), state.RefreshUse{Resource: resource, Hash: sum("refresh"), Client: g.Client, Next: sum("r2")})
	refused(t, err, contract.AuthRequired)
	grants, err := s.Grants(t.Context())
	must(t, err)
	if len(grants) != 1 || grants[0].Reason != "its code was used twice" {
		t.Errorf("%+v", grants)
	}
}

// TestCodeRace: of many uses at once one gets something.
func TestCodeRace(t *testing.T) {
	s, _, _, g := world(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 8 {
		wg.Go(func() {
			if _, err := s.UseCode(context.Background(), state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge"}); err == nil {
				mu.Lock()
				got++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if got != 1 {
		t.Errorf("%d uses of one code", got)
	}
}

// TestRefresh: rotation, its grace, and that a token or a copy of it that is used after the
// grace ends everything.
func TestRefresh(t *testing.T) {
	type step struct {
		after     time.Duration
		use, next string
		bad       bool
	}
	for name, steps := range map[string][]step{
		"rotated":                     {{0, "r0", "r1", false}, {time.Hour, "r1", "r2", false}, {time.Hour, "r2", "r3", false}},
		"the same twice in the grace": {{0, "r0", "r1", false}, {state.RefreshGrace, "r0", "r1b", false}, {time.Minute, "r1b", "r2", false}},
		"the same after the grace":    {{0, "r0", "r1", false}, {state.RefreshGrace + time.Millisecond, "r0", "r1b", true}, {0, "r1", "r2", true}},
		"the grace begins once":       {{0, "r0", "r1", false}, {20 * time.Second, "r0", "r1b", false}, {20 * time.Second, "r0", "r1c", true}},
		"a copy after the grace":      {{0, "r0", "r1", false}, {time.Second, "r0", "copy", false}, {time.Hour, "r1", "r2", false}, {time.Minute, "copy", "c2", true}, {0, "r2", "r3", true}},
		"a copy in the grace":         {{0, "r0", "r1", false}, {time.Second, "r0", "copy", false}, {time.Hour, "r1", "r2", false}, {time.Second, "copy", "c2", false}},
		"an old one":                  {{0, "r0", "r1", false}, {time.Hour, "r1", "r2", false}, {time.Hour, "r0", "x", true}, {0, "r2", "r3", true}},
		"over":                        {{state.RefreshLife, "r0", "r1", true}},
		"a guess":                     {{0, "guess", "r1", true}, {0, "r0", "r1", false}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c, _, g := world(t)
			_, err := s.UseCode(t.Context(), state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge", Refresh: sum("r0")})
			must(t, err)
			for i, x := range steps {
				c.advance(x.after)
				r, err := s.UseRefresh(t.Context(), state.RefreshUse{Resource: resource, Hash: sum(x.use), Client: g.Client, Next: sum(x.next)})
				if x.bad {
					refused(t, err, contract.AuthRequired)
				} else if err != nil || r.Grant.ID != g.ID || r.Scope != "openid dodo:read dodo:write" {
					t.Fatalf("step %d: %+v %v", i, r, err)
				}
			}
		})
	}
}

// TestRefreshRefusals: what is refused uses nothing.
func TestRefreshRefusals(t *testing.T) {
	s, _, _, g := world(t)
	ctx := t.Context()
	_, err := s.UseCode(ctx, state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge", Refresh: sum("r0")})
	must(t, err)
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("r0"), Client: "dodo-client-2", Next: sum("x")})
	refused(t, err, contract.AuthRequired)
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: "https://other.example/mcp", Hash: sum("r0"), Client: g.Client, Next: sum("x")})
	refused(t, err, contract.AuthRequired)
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("r0"), Client: g.Client, Next: sum("x"), Scope: []string{"dodo:read", "dodo:exec"}})
	refused(t, err, contract.Forbidden)
	must(t, s.RevokeRefresh(ctx, sum("r0"), "dodo-client-2"))
	r, err := s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("r0"), Client: g.Client, Next: sum("r1"), Scope: []string{"dodo:read"}})
	if err != nil || r.Scope != "openid dodo:read dodo:write" {
		t.Fatalf("%+v %v", r, err)
	}
	for i := range 15 {
		_, err := s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("r0"), Client: g.Client, Next: fmt.Sprint(i)})
		must(t, err)
	}
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("r0"), Client: g.Client, Next: "one more"})
	refused(t, err, contract.ResourceLimit)
	must(t, s.RevokeRefresh(ctx, sum("r1"), g.Client))
	must(t, s.RevokeRefresh(ctx, sum("r1"), g.Client))
	_, err = s.Grant(ctx, g.ID)
	refused(t, err, contract.AuthRequired)
}

// TestDeleteOAuthClient: all that one client had goes, in one step, and nothing of another.
func TestDeleteOAuthClient(t *testing.T) {
	s, c, o, g := world(t)
	ctx := t.Context()
	ws := workspace(t, s, "/w", "boot_1")
	other, err := s.AddOAuthClient(ctx, client("dcr-other", state.ClientDynamic))
	must(t, err)
	kept := loggedIn(t, s, other, "code2", c.now().Add(time.Minute))
	for _, id := range []string{o.ID, other.ID} {
		must(t, s.GrantClient(ctx, ws, id, contract.NewScopes(contract.ScopeRead)))
	}
	ask := func(grant string) state.Approval {
		a, _, err := s.Consume(ctx, state.Question{Workspace: ws, Epoch: "boot_1", Principal: grant, Tool: "write_file", Digest: "d"}, time.Minute)
		must(t, err)
		return a
	}
	mine, others := ask(g.ID), ask(kept.ID)
	must(t, s.DeleteOAuthClient(ctx, o.ID))
	refused(t, s.DeleteOAuthClient(ctx, o.ID), contract.NotFound)
	for a, want := range map[string]state.ApprovalStatus{mine.ID: state.Denied, others.ID: state.Pending} {
		if got, err := s.Approval(ctx, ws, "", a); err != nil || got.Status != want {
			t.Errorf("%+v %v", got, err)
		}
	}
	for id, want := range map[string]int{o.ID: 0, other.ID: 1} {
		if a, err := s.Authority(ctx, ws, id); err != nil || len(a.ClientScopes) != want {
			t.Errorf("%s: %+v %v", id, a, err)
		}
	}
	_, err = s.OAuthClient(ctx, o.ID)
	refused(t, err, contract.NotFound)
	if _, err := s.Grant(ctx, kept.ID); err != nil {
		t.Error(err)
	}
	events, err := s.Events(ctx, "", 1)
	must(t, err)
	if events[0].Tool != "owner.auth.delete-client" || events[0].Ref != o.ID {
		t.Errorf("%+v", events[0])
	}
	if v, err := s.Verify(ctx); err != nil || v.Broken != nil {
		t.Errorf("%+v %v", v, err)
	}
}

// TestDeleteOAuthClientFails: when the last step fails, nothing of it was done.
func TestDeleteOAuthClientFails(t *testing.T) {
	s, _, o, g := world(t)
	must(t, run(t, s, "CREATE TRIGGER stop BEFORE DELETE ON clients BEGIN SELECT RAISE(ABORT, 'stop'); END"))
	if s.DeleteOAuthClient(t.Context(), o.ID) == nil {
		t.Fatal("no failure")
	}
	if _, err := s.Grant(t.Context(), g.ID); err != nil {
		t.Error(err)
	}
}

// TestPruneLogins: what ended goes, with its marker; what holds stays.
func TestPruneLogins(t *testing.T) {
	s, c, o, g := world(t)
	ctx, keep := t.Context(), state.Retention{Audit: time.Hour, Idempotency: time.Hour}
	_, err := s.UseCode(ctx, state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge", Refresh: sum("r0")})
	must(t, err)
	gone := loggedIn(t, s, o, "code2", c.now().Add(time.Minute))
	_, err = s.RevokeGrant(ctx, gone.ID)
	must(t, err)
	count := func() string {
		var codes, tokens, grants, marks int
		must(t, s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Row(ctx, `SELECT (SELECT count(*) FROM codes), (SELECT count(*) FROM refresh_tokens), (SELECT count(*) FROM grants),
				(SELECT count(*) FROM meta WHERE key LIKE 'identity-grant:%')`, nil, &codes, &tokens, &grants, &marks)
			return err
		}))
		return fmt.Sprint(codes, tokens, grants, marks)
	}
	must(t, s.Prune(ctx, keep))
	if got := count(); got != "1 1 2 2" {
		t.Error(got)
	}
	c.advance(25 * time.Hour)
	must(t, s.Prune(ctx, keep))
	if got := count(); got != "0 1 1 1" {
		t.Error(got)
	}
	if _, err := s.Grant(ctx, g.ID); err != nil {
		t.Error(err)
	}
	c.advance(state.GrantLife)
	must(t, s.Prune(ctx, keep))
	if got := count(); got != "0 0 0 0" {
		t.Error(got)
	}
}

// TestLoginsHoldNoSecret: what is stored opens nothing.
func TestLoginsHoldNoSecret(t *testing.T) {
	for query, want := range map[string]bool{
		"INSERT INTO clients VALUES ('a', 'static', '', '[]', 'none', 'secret', 1, 'web', 1, NULL)":                true,
		"INSERT INTO clients VALUES ('a', 'static', '', '[]', 'client_secret_basic', '', 1, 'web', 1, NULL)":       true,
		"INSERT INTO clients VALUES ('a', 'metadata', '', '[]', 'client_secret_post', 'hash', 1, 'web', 1, NULL)":  true,
		"INSERT INTO clients VALUES ('a', 'other', '', '[]', 'none', '', 1, 'web', 1, NULL)":                       true,
		"INSERT INTO clients VALUES ('a', 'static', '', 'no list', 'client_secret_basic', 'hash', 1, 'web', 1, 1)": false,
	} {
		s := open(t, place(t), nil)
		if err := run(t, s, query); (err != nil) != want {
			t.Errorf("%s: %v", query, err)
		}
		if !want {
			if o, err := s.OAuthClient(t.Context(), "a"); err != nil || len(o.Redirects) != 0 {
				t.Errorf("%+v %v", o, err)
			}
		}
	}
}

func BenchmarkGrant(b *testing.B) {
	s, _, _, g := world(b)
	for b.Loop() {
		if _, err := s.Grant(b.Context(), g.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRefreshForever: a client that does nothing but refresh does not fill the disk.
func TestRefreshForever(t *testing.T) {
	s, c, _, g := world(t)
	ctx := t.Context()
	_, err := s.UseCode(ctx, state.CodeUse{Resource: resource, Hash: sum("code"), Client: g.Client, Challenge: "challenge", Refresh: sum("last")})
	must(t, err)
	must(t, run(t, s, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
		INSERT INTO refresh_tokens SELECT 'old' || i, "grant", family, -i, scope, created, expires, created FROM refresh_tokens, n`))
	rows := func() (n int) {
		must(t, s.Read(ctx, func(ctx context.Context, c *sqlitedb.Conn) error {
			_, err := c.Row(ctx, "SELECT count(*) FROM refresh_tokens", nil, &n)
			return err
		}))
		return n
	}
	before := rows()
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: sum("last"), Client: g.Client, Next: sum("next")})
	must(t, err)
	if n := rows(); before != 6001 || n != 5000 {
		t.Errorf("%d rows, %d before", n, before)
	}
	// One that is remembered still tells of a thief.
	c.advance(time.Hour)
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: "old5000", Client: g.Client, Next: sum("x")})
	refused(t, err, contract.AuthRequired)
	if _, err := s.Grant(ctx, g.ID); err != nil {
		t.Errorf("one that is forgotten: %v", err)
	}
	_, err = s.UseRefresh(ctx, state.RefreshUse{Resource: resource, Hash: "old4000", Client: g.Client, Next: sum("x")})
	refused(t, err, contract.AuthRequired)
	_, err = s.Grant(ctx, g.ID)
	refused(t, err, contract.AuthRequired)
}
