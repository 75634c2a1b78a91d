package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/dodo/internal/contract"
)

func (w *world) keyFile() string { return filepath.Join(w.cfg.Dir, keysDir, keysFile) }

func (w *world) stored(t testing.TB) storedKeys {
	t.Helper()
	raw, err := os.ReadFile(w.keyFile())
	must(t, err)
	var s storedKeys
	must(t, json.Unmarshal(raw, &s))
	return s
}

func (w *world) private(t testing.TB) (*ecdsa.PrivateKey, string) { return w.privateOf(t, 0) }

// published are the names of the keys that the server shows.
func (w *world) published(t testing.TB) (ids []string) {
	t.Helper()
	a := w.get(w.browser(), "/jwks")
	for _, k := range a.json(t)["keys"].([]any) {
		k := k.(map[string]any)
		if k["d"] != nil || k["kty"] != "EC" || k["crv"] != "P-256" || k["alg"] != "ES256" || k["use"] != "sig" {
			t.Errorf("%v", k)
		}
		ids = append(ids, k["kid"].(string))
	}
	return ids
}

// TestKeysArePrivate: the key is made once, for the owner alone.
func TestKeysArePrivate(t *testing.T) {
	w := newWorld(t)
	for path, mode := range map[string]os.FileMode{w.keyFile(): 0o600, filepath.Dir(w.keyFile()): 0o700} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != mode {
			t.Errorf("%v %v", i, err)
		}
	}
	was := w.published(t)
	w.restart()
	if now := w.published(t); len(was) != 1 || strings.Join(now, " ") != strings.Join(was, " ") {
		t.Errorf("%v %v", was, now)
	}
}

// TestKeysMadeAtOnce: of many servers that start at once all sign with one key.
func TestKeysMadeAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dodo")
	dir, err := filepath.EvalSymlinks(filepath.Dir(dir))
	must(t, err)
	dir = filepath.Join(dir, "dodo")
	must(t, os.Mkdir(dir, 0o700))
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			k, err := openKeys(context.Background(), dir, time.Now())
			if err != nil {
				t.Error(err)
				return
			}
			defer k.dir.Close()
			set, err := k.get()
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = set.current.id
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("%v", ids)
		}
	}
}

// TestKeysDamaged: what is not the file that we wrote is refused and stays as it is; a server
// that runs neither signs nor lets in with it.
func TestKeysDamaged(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, *world){
		"empty":           func(t *testing.T, w *world) { must(t, os.WriteFile(w.keyFile(), nil, 0o600)) },
		"no JSON":         func(t *testing.T, w *world) { must(t, os.WriteFile(w.keyFile(), []byte("{"), 0o600)) },
		"no key":          func(t *testing.T, w *world) { w.write(t, storedKeys{Version: 1}) },
		"another version": func(t *testing.T, w *world) { s := w.stored(t); s.Version = 2; w.write(t, s) },
		"another name":    func(t *testing.T, w *world) { s := w.stored(t); s.Keys[0].ID = "x"; w.write(t, s) },
		"another number": func(t *testing.T, w *world) {
			s, other := w.stored(t), newWorld(t).stored(t)
			s.Keys[0].Private = other.Keys[0].Private
			w.write(t, s)
		},
		"zero": func(t *testing.T, w *world) {
			s := w.stored(t)
			s.Keys[0].Private = base64.RawURLEncoding.EncodeToString(make([]byte, 32))
			w.write(t, s)
		},
		"twice": func(t *testing.T, w *world) { s := w.stored(t); s.Keys = append(s.Keys, s.Keys[0]); w.write(t, s) },
		"two that sign": func(t *testing.T, w *world) {
			s := w.stored(t)
			s.Keys = append(s.Keys, newWorld(t).stored(t).Keys[0])
			w.write(t, s)
		},
		"none that signs": func(t *testing.T, w *world) {
			s := w.stored(t)
			s.Keys[0].Ends = w.clock.now().Add(time.Hour).UnixMilli()
			w.write(t, s)
		},
		"an unknown field": func(t *testing.T, w *world) {
			raw, err := os.ReadFile(w.keyFile())
			must(t, err)
			must(t, os.WriteFile(w.keyFile(), []byte(strings.Replace(string(raw), `"version"`, `"x":1,"version"`, 1)), 0o600))
		},
		"too large":      func(t *testing.T, w *world) { must(t, os.WriteFile(w.keyFile(), make([]byte, keysBytes+1), 0o600)) },
		"others read it": func(t *testing.T, w *world) { must(t, os.Chmod(w.keyFile(), 0o644)) },
		"a link": func(t *testing.T, w *world) {
			must(t, os.Rename(w.keyFile(), w.keyFile()+".real"))
			must(t, os.Symlink(w.keyFile()+".real", w.keyFile()))
		},
		"two names":   func(t *testing.T, w *world) { must(t, os.Link(w.keyFile(), w.keyFile()+".other")) },
		"a directory": func(t *testing.T, w *world) { must(t, os.Remove(w.keyFile())); must(t, os.Mkdir(w.keyFile(), 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			client := w.registered()
			got, code := w.login(client), w.code(client)
			damage(t, w)
			before, _ := os.ReadFile(w.keyFile())
			if _, err := w.Verify(t.Context(), got["access_token"].(string)); err == nil || errors.Is(err, contract.AuthRequired) {
				t.Errorf("a running server: %v", err)
			}
			if a := w.form("/token", exchange(client, code)); a.StatusCode != 500 || strings.Contains(a.body, w.cfg.Dir) {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
			if a := w.get(w.browser(), "/jwks"); a.StatusCode != 500 {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
			if s, err := New(t.Context(), w.cfg); err == nil {
				s.Close()
				t.Error("a new server took it")
			}
			if err := RotateKey(t.Context(), w.cfg.Dir); err == nil {
				t.Error("it was rotated away")
			}
			if after, _ := os.ReadFile(w.keyFile()); string(before) != string(after) {
				t.Error("the file was changed")
			}
		})
	}
	w := newWorld(t)
	token := w.login(w.registered())["access_token"].(string)
	must(t, os.Remove(w.keyFile()))
	if _, err := w.Verify(t.Context(), token); err == nil || errors.Is(err, contract.AuthRequired) {
		t.Errorf("a server whose key is gone: %v", err)
	}
	w.restart() // the owner's way to end all logins
	if w.holds(token) {
		t.Error("a token holds that nobody signed")
	}
}

func (w *world) write(t testing.TB, s storedKeys) {
	t.Helper()
	raw, err := json.Marshal(s)
	must(t, err)
	must(t, os.WriteFile(w.keyFile(), raw, 0o600))
}

// TestRotateKey: a running server signs with the new key at once, tokens of the old one hold
// to their end, and then the old one is gone.
func TestRotateKey(t *testing.T) {
	w := newWorld(t)
	w.clock.ms.Store(time.Now().UnixMilli())
	client := w.registered()
	got := w.login(client)
	old := w.published(t)[0]
	must(t, RotateKey(t.Context(), w.cfg.Dir))
	ids := w.published(t)
	if len(ids) != 2 || ids[0] == old || ids[1] != old {
		t.Fatalf("%v", ids)
	}
	next := w.refresh(client, got["refresh_token"].(string)).json(t)
	if head, _ := parts(t, next["access_token"].(string)); head["kid"] != ids[0] {
		t.Errorf("%v", head)
	}
	if !w.holds(got["access_token"]) || !w.holds(next["access_token"]) {
		t.Error("rotation ended a token")
	}
	w.clock.advance(tokenLife + leeway + time.Minute)
	if ids := w.published(t); len(ids) != 1 || ids[0] == old {
		t.Errorf("%v", ids)
	}
	_, claims := parts(t, got["access_token"].(string))
	claims["exp"] = w.clock.now().Add(time.Hour).Unix()
	private, id := w.privateOf(t, 1)
	if w.holds(signed(t, private, "ES256", id, "at+jwt", claims)) {
		t.Error("a key that is over lets in")
	}
	for range keysMost - 2 {
		must(t, RotateKey(t.Context(), w.cfg.Dir))
	}
	if err := RotateKey(t.Context(), w.cfg.Dir); !errors.Is(err, contract.ResourceLimit) {
		t.Error(err)
	}
}

func (w *world) privateOf(t testing.TB, i int) (*ecdsa.PrivateKey, string) {
	t.Helper()
	k := w.stored(t).Keys[i]
	raw, err := base64.RawURLEncoding.DecodeString(k.Private)
	must(t, err)
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	must(t, err)
	return private, k.ID
}
