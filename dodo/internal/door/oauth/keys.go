package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/internal/safefile"
)

// The place of the keys in the installation directory.
const (
	keysDir  = "keys"
	keysFile = "signing.json"
	keysLock = "keys.lock"
)

const (
	whatDir  = "the directory of the signing keys"
	whatFile = "the file of the signing keys"
)

// Bounds of the file.
const (
	keysBytes = 64 << 10
	keysMost  = 16
)

const wayOut = "put back the file keys/signing.json of the installation directory from a copy, or remove it and start dodo again: " +
	"then every client must log in anew"

// storedKey is a key in the file. The one without an end signs.
type storedKey struct {
	ID      string `json:"kid"`
	Created int64  `json:"created"`        // milliseconds since 1970
	Ends    int64  `json:"ends,omitempty"` // when the last token that it signed has ended
	Private string `json:"d"`              // the private number, base64url
}

type storedKeys struct {
	Version int         `json:"version"`
	Keys    []storedKey `json:"keys"`
}

// A signingKey is a key that is ready to use.
type signingKey struct {
	id     string
	ends   time.Time // zero: it signs
	public *ecdsa.PublicKey
	tokens jose.Signer // access tokens
	ids    jose.Signer // id tokens
}

// A keySet is what the file said.
type keySet struct {
	current *signingKey
	all     map[string]*signingKey
	public  []jose.JSONWebKey // in the order of the file
	seen    seenTokens
}

// keyring reads the keys when the file has changed.
type keyring struct {
	dir *safefile.Root

	mu  sync.Mutex // guards the rest
	was safefile.Identity
	set *keySet
}

// openKeys opens the keys of an installation directory, and makes one when there is none.
func openKeys(ctx context.Context, dir string, now time.Time) (*keyring, error) {
	root, err := privdir.Create(filepath.Join(dir, keysDir), whatDir)
	if err != nil {
		return nil, state.Fault(err)
	}
	k := &keyring{dir: root}
	_, err = k.get()
	if errors.Is(err, fs.ErrNotExist) {
		if err = changeKeys(ctx, root, now, false); err == nil {
			_, err = k.get()
		}
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return k, nil
}

// get is the keys as they are now.
func (k *keyring) get() (*keySet, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := k.dir.Stat(keysFile)
	if err == nil && k.set != nil && info.Identity == k.was {
		return k.set, nil
	}
	k.set = nil // what cannot be read signs nothing and holds nothing true
	set, was, err := readKeys(k.dir)
	if err == nil {
		k.set, k.was = set, was
	}
	return set, err
}

func unreadable(cause error, why string) error {
	return fault.Wrap(contract.InternalError, cause, "the signing keys cannot be used: %s; the file was left as it is", why).WithHint("%s", wayOut)
}

func loadKeys(dir *safefile.Root) (stored storedKeys, was safefile.Identity, err error) {
	if err := privdir.CheckFile(dir, keysFile, whatFile); err != nil {
		return stored, was, state.Fault(err)
	}
	f, was, err := dir.Open(keysFile)
	if err != nil {
		return stored, was, unreadable(err, "the file cannot be opened")
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, keysBytes+1))
	if err != nil || len(raw) > keysBytes {
		return stored, was, unreadable(err, "the file cannot be read or is too large")
	}
	if err := jsonv2.Unmarshal(raw, &stored, jsonv2.RejectUnknownMembers(true)); err != nil {
		return stored, was, unreadable(err, "the file is damaged")
	}
	if stored.Version != 1 {
		return stored, was, unreadable(nil, "the file was made by another version")
	}
	return stored, was, nil
}

func readKeys(dir *safefile.Root) (*keySet, safefile.Identity, error) {
	stored, was, err := loadKeys(dir)
	if err != nil {
		return nil, was, err
	}
	set := &keySet{all: map[string]*signingKey{}}
	for _, s := range stored.Keys {
		key, err := readyKey(s)
		if err != nil {
			return nil, was, unreadable(err, "a key is damaged")
		}
		if set.all[s.ID] != nil || key.ends.IsZero() && set.current != nil {
			return nil, was, unreadable(nil, "the file is damaged")
		}
		if key.ends.IsZero() {
			set.current = key
		}
		set.all[s.ID] = key
		set.public = append(set.public, publicKey(key.public, key.id))
	}
	if set.current == nil {
		return nil, was, unreadable(nil, "no key is there that signs")
	}
	return set, was, nil
}

// readyKey takes the private number alone from the file: what is public follows from it, and
// its name from that, so that a changed file shows.
func readyKey(s storedKey) (*signingKey, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s.Private)
	if err != nil {
		return nil, err
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, err
	}
	id, err := nameOf(&private.PublicKey)
	if err != nil {
		return nil, err
	}
	if id != s.ID {
		return nil, errors.New("the name is not that of the key")
	}
	key := &signingKey{id: id, public: &private.PublicKey}
	if s.Ends != 0 {
		key.ends = time.UnixMilli(s.Ends)
	}
	signer := func(typ jose.ContentType) (jose.Signer, error) {
		return jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: id}},
			(&jose.SignerOptions{}).WithType(typ))
	}
	if key.tokens, err = signer(typeAccess); err != nil {
		return nil, err
	}
	key.ids, err = signer(typeID)
	return key, err
}

func publicKey(key *ecdsa.PublicKey, id string) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}
}

// nameOf is a key's name: its thumbprint (RFC 7638).
func nameOf(key *ecdsa.PublicKey) (string, error) {
	return thumbprint(jose.JSONWebKey{Key: key})
}

// published is the document of the keys whose tokens may still hold.
func (s *keySet) published(now time.Time) jose.JSONWebKeySet {
	var out jose.JSONWebKeySet
	for _, p := range s.public {
		if !s.all[p.KeyID].over(now) {
			out.Keys = append(out.Keys, p)
		}
	}
	return out
}

// over says that no token that the key signed can still hold.
func (k *signingKey) over(now time.Time) bool { return !k.ends.IsZero() && !now.Before(k.ends) }

// RotateKey makes a new signing key in an installation directory. The one before stays
// published until the last token that it signed has ended. Running servers notice.
func RotateKey(ctx context.Context, dir string) error {
	root, err := privdir.Create(filepath.Join(dir, keysDir), whatDir)
	if err != nil {
		return state.Fault(err)
	}
	defer root.Close()
	return changeKeys(ctx, root, time.Now(), true)
}

// changeKeys adds a key that signs from now on: without rotate only when there is none.
func changeKeys(ctx context.Context, dir *safefile.Root, now time.Time, rotate bool) error {
	held, err := privdir.Lock(ctx, filepath.Join(dir.Path(), keysLock))
	if err != nil {
		return state.Fault(err)
	}
	defer held.Unlock()
	stored := storedKeys{Version: 1}
	switch _, _, err := readKeys(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || !rotate:
		return err
	default:
		if stored, _, err = loadKeys(dir); err != nil {
			return err
		}
	}
	var keep []storedKey
	for _, k := range stored.Keys {
		if k.Ends == 0 {
			k.Ends = now.Add(tokenLife + leeway).UnixMilli()
		}
		if k.Ends > now.UnixMilli() {
			keep = append(keep, k)
		}
	}
	if len(keep) >= keysMost {
		return fault.New(contract.ResourceLimit, "%d keys have signed tokens that still hold", len(keep)).
			WithHint("try again in %d minutes", int(tokenLife.Minutes()))
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	d, err := private.Bytes()
	if err != nil {
		return err
	}
	id, err := nameOf(&private.PublicKey)
	if err != nil {
		return err
	}
	stored.Keys = append([]storedKey{{ID: id, Created: now.UnixMilli(), Private: base64.RawURLEncoding.EncodeToString(d)}}, keep...)
	raw, err := jsonv2.Marshal(stored)
	if err != nil {
		return err
	}
	if err := dir.WriteFileAtomic(keysFile, raw, 0o600); err != nil {
		return fault.Wrap(contract.InternalError, err, "the signing keys cannot be written").WithHint("look at the room and the rights of the installation directory")
	}
	return nil
}
