package oauth

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// Bounds of metadata documents.
const (
	documentBytes   = 32 << 10
	documentTime    = 5 * time.Second
	documentAge     = 5 * time.Minute // how long one is kept that says nothing about it
	documentOldest  = 24 * time.Hour
	documentFailure = 30 * time.Second // how long a failure is kept: nobody makes us ask again and again
	mostDocuments   = 64
	mostFetches     = 4
	documentIDBytes = 512
)

// documents reads what clients say of themselves at the address that is their id (Client ID
// Metadata Documents), and keeps it for a while.
type documents struct {
	client   *http.Client
	now      func() time.Time
	patience time.Duration
	slots    chan struct{}

	mu   sync.Mutex // guards the rest
	kept map[string]*document
}

// A document is one that was read, or could not be.
type document struct {
	ready  chan struct{} // closed when the rest is set
	client state.OAuthClient
	err    error
	until  time.Time
}

func newDocuments(client *http.Client, now func() time.Time) *documents {
	c := *client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Jar = nil
	return &documents{client: &c, now: now, patience: documentTime, slots: make(chan struct{}, mostFetches), kept: map[string]*document{}}
}

// isDocumentID reports whether the id of a client is the address of a document: https with a
// path, in the one form that it has.
func isDocumentID(id string) bool {
	r, why := parseRedirect(id)
	if why != "" || r.kind != redirectWeb || len(id) > documentIDBytes || strings.Contains(id, "?") {
		return false
	}
	u, err := url.Parse(id)
	return err == nil && u.Path != "" && u.Path != "/" && path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/") && !strings.Contains(u.EscapedPath(), "%")
}

func noDocument(why string) error {
	return fault.New(contract.InvalidInput, "the client's metadata document cannot be used: %s", why)
}

// get is the client that a document describes.
func (d *documents) get(ctx context.Context, id string) (state.OAuthClient, error) {
	d.mu.Lock()
	x := d.kept[id]
	mine := x == nil || x.done() && !d.now().Before(x.until)
	if mine {
		if !d.room() {
			d.mu.Unlock()
			return state.OAuthClient{}, fault.New(contract.ResourceLimit, "too many metadata documents are being read").Retry()
		}
		x = &document{ready: make(chan struct{})}
		d.kept[id] = x
	}
	d.mu.Unlock()
	if mine {
		d.read(ctx, id, x)
	}
	select {
	case <-x.ready:
		return x.client, x.err
	case <-ctx.Done():
		return state.OAuthClient{}, ctx.Err()
	}
}

func (x *document) done() bool {
	select {
	case <-x.ready:
		return true
	default:
		return false
	}
}

// room makes room for one more: what is over goes first, then any that is not being read.
func (d *documents) room() bool {
	if len(d.kept) < mostDocuments {
		return true
	}
	victim := ""
	for id, x := range d.kept {
		if !x.done() {
			continue
		}
		victim = id
		if !d.now().Before(x.until) {
			break
		}
	}
	delete(d.kept, victim)
	return victim != ""
}

// read fetches a document. Who began to wait for it gets the answer although the one who
// asked first went away.
func (d *documents) read(ctx context.Context, id string, x *document) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.patience)
	defer cancel()
	var age time.Duration
	select {
	case d.slots <- struct{}{}:
		x.client, age, x.err = d.fetch(ctx, id)
		<-d.slots
	case <-ctx.Done():
		x.err = noDocument("too many are being read")
	}
	if x.err != nil {
		age = documentFailure
	}
	x.until = d.now().Add(age)
	close(x.ready)
}

func (d *documents) fetch(ctx context.Context, id string) (o state.OAuthClient, age time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return o, 0, noDocument("its address is none")
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "dodo")
	a, err := d.client.Do(r)
	if err != nil {
		return o, 0, fault.Wrap(contract.InvalidInput, err, "the client's metadata document cannot be used: it could not be fetched")
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return o, 0, noDocument("its address answered " + strconv.Itoa(a.StatusCode))
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return o, 0, noDocument("it is not JSON")
	}
	raw, err := io.ReadAll(io.LimitReader(a.Body, documentBytes+1))
	if err != nil || len(raw) > documentBytes {
		return o, 0, noDocument("it is too large or broke off")
	}
	if o, err = parseDocument(id, raw); err != nil {
		return o, 0, err
	}
	return o, ageOf(a.Header), nil
}

// parseDocument makes a client of a document. It must name the address that it was read from,
// and cannot have a secret: everybody can read it.
func parseDocument(id string, raw []byte) (o state.OAuthClient, err error) {
	d := clientData{}
	if jsonv2.Unmarshal(raw, &d) != nil {
		return o, noDocument("it is not the JSON of a client")
	}
	if d.ID != id {
		return o, noDocument("its client_id is not its address")
	}
	if d.Method == "" {
		d.Method = methodNone
	}
	if d.Secret != nil || d.Method != methodNone {
		return o, noDocument("token_endpoint_auth_method must be none")
	}
	o, wrong := d.client()
	if wrong != nil {
		return state.OAuthClient{}, noDocument(wrong.description)
	}
	o.ID, o.Kind = id, state.ClientMetadata
	return o, nil
}

// ageOf is how long an answer may be kept.
func ageOf(h http.Header) time.Duration {
	age := documentAge
	for directive := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
			if err != nil {
				return 0
			}
			age = time.Duration(seconds) * time.Second
		}
	}
	return min(age, documentOldest)
}
