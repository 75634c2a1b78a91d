package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// ConsentStatus is how far a request for consent is.
type ConsentStatus string

// The statuses.
const (
	ConsentPending  ConsentStatus = "pending"
	ConsentApproved ConsentStatus = "approved"
	ConsentDenied   ConsentStatus = "denied"
	ConsentExpired  ConsentStatus = "expired"
)

// A Consent is a login that waits for the owner.
type Consent struct {
	ID           string
	Phrase       string // the same on the page and in the list: the owner compares them
	ClientID     string
	ClientName   string // as the client calls itself; anybody may have any name
	RedirectHost string // where the code goes; of a custom scheme the scheme and ":"
	Redirect     string
	Scopes       []string // all that is asked for, with openid and offline_access
	Resource     string
	AccessMode   contract.AccessMode
	Created      time.Time
	Expires      time.Time
	Status       ConsentStatus
	LoopbackOnly bool // the code stays on this machine: any program of it can say that it is this client
}

// Bounds of logins that wait.
const (
	mostPending  = 20
	mostOfOne    = 5               // of these, of one client: ids are no secrets
	mostUnknown  = 10              // of these, of clients that the owner never said yes to: they cannot shut out the others
	consentShown = 5 * time.Minute // how long the page can still say that a request has ended
	afterYes     = time.Minute     // how long the browser has at least to take a yes up
)

// consents are the logins of this process. They end with it: a login takes minutes, and what
// is not there is refused.
type consents struct {
	now func() time.Time

	mu   sync.Mutex // guards the rest
	byID map[string]*waiting
}

// waiting is a login with what the owner is not shown.
type waiting struct {
	Consent
	request request
	browser string // hash of the secret of the browser that began it
	form    string // what its page must send along
}

func newConsents(now func() time.Time) *consents {
	return &consents{now: now, byID: map[string]*waiting{}}
}

// add begins a login, and returns the secret for the browser that began it.
func (c *consents) add(req request, resource string, mode contract.AccessMode) (Consent, string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	var pending, unknown, same int
	phrases := map[string]bool{}
	for id, x := range c.byID {
		if x.Expires.Add(consentShown).Before(now) {
			delete(c.byID, id)
		}
		if x.status(now) == ConsentPending {
			pending++
			if !x.request.known() {
				unknown++
			}
			if x.ClientID == req.client.ID {
				same++
			}
		}
		phrases[x.Phrase] = true
	}
	if pending >= mostPending || same >= mostOfOne || !req.known() && unknown >= mostUnknown {
		return Consent{}, "", fault.New(contract.ResourceLimit, "too many logins wait for the owner").
			WithHint("the owner answers them: dodo auth pending, then dodo auth approve or dodo auth deny. They end by themselves after %d minutes", int(consentLife.Minutes()))
	}
	phrase := newPhrase()
	for phrases[phrase] {
		phrase = newPhrase()
	}
	secret := random(secretBytes)
	x := &waiting{
		Consent: Consent{
			ID: contract.NewID("auth", 0), Phrase: phrase, ClientID: req.client.ID, ClientName: req.client.Name,
			RedirectHost: req.redirect.host, Redirect: req.redirect.raw, Scopes: strings.Fields(req.scope), Resource: resource, AccessMode: mode,
			Created: now, Expires: now.Add(consentLife), Status: ConsentPending, LoopbackOnly: req.redirect.stays(),
		},
		request: req, browser: hashOf(secret), form: random(secretBytes),
	}
	c.byID[x.ID] = x
	return x.Consent, secret, nil
}

// known says that the owner said yes to the client before, or registered it.
func (r request) known() bool {
	return r.client.Kind == state.ClientStatic || !r.client.Approved.IsZero()
}

// status is how far a login is now.
func (x *waiting) status(now time.Time) ConsentStatus {
	if (x.Status == ConsentPending || x.Status == ConsentApproved) && !now.Before(x.Expires) {
		return ConsentExpired
	}
	return x.Status
}

// seen is a copy of a login as it is now.
func (x *waiting) seen(now time.Time) waiting {
	y := *x
	y.Status = x.status(now)
	return y
}

// of is the login that a browser began, by its id and its secret.
func (c *consents) of(id, secret string) (w waiting, found, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.byID[id]
	if x == nil {
		return w, false, false
	}
	if subtle.ConstantTimeCompare([]byte(x.browser), []byte(hashOf(secret))) != 1 {
		return w, true, false
	}
	return x.seen(c.now()), true, true
}

// take takes a login that the owner has answered, once.
func (c *consents) take(id string) (w waiting, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.byID[id]
	if x == nil {
		return w, false
	}
	w = x.seen(c.now())
	if w.Status != ConsentApproved && w.Status != ConsentDenied {
		return w, false
	}
	delete(c.byID, id)
	return w, true
}

// Pending are the logins that wait, the oldest first.
func (s *Server) Pending() []Consent {
	c := s.consents
	c.mu.Lock()
	defer c.mu.Unlock()
	now, list := c.now(), []Consent{}
	for x := range maps.Values(c.byID) {
		if x.status(now) == ConsentPending {
			list = append(list, x.Consent)
		}
	}
	slices.SortFunc(list, func(a, b Consent) int {
		if d := a.Created.Compare(b.Created); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Approve is the owner's yes to a login that waits. NOT_FOUND, APPROVAL_EXPIRED, or CONFLICT
// for one that was denied; the same word again is no fault.
func (s *Server) Approve(ctx context.Context, id string) (Consent, error) {
	return s.decide(ctx, id, ConsentApproved, "owner.auth.approve")
}

// Deny is the owner's no. The client is told when its browser asks.
func (s *Server) Deny(ctx context.Context, id string) (Consent, error) {
	return s.decide(ctx, id, ConsentDenied, "owner.auth.deny")
}

// decide notes the owner's word, and that it was given before it counts.
func (s *Server) decide(ctx context.Context, id string, to ConsentStatus, act string) (Consent, error) {
	c, err := s.consents.decide(id, to, false)
	if err != nil || c.Status == to {
		return c, err
	}
	if err := s.cfg.Store.Audit(ctx, state.Event{Principal: state.PrincipalOwner, Tool: act, Ref: id, Result: state.ResultOK}); err != nil {
		return Consent{}, err
	}
	return s.consents.decide(id, to, true)
}

// decide looks whether a login can take a word, and with change gives it.
func (c *consents) decide(id string, to ConsentStatus, change bool) (Consent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	x := c.byID[id]
	if x == nil {
		return Consent{}, fault.New(contract.NotFound, "no login here has that id").WithHint("`dodo auth pending` lists those that wait")
	}
	switch status := x.status(now); {
	case status == to:
		return x.Consent, nil
	case status == ConsentExpired:
		return Consent{}, fault.New(contract.ApprovalExpired, "the login ended before it was answered").WithHint("begin it again in the client")
	case status != ConsentPending:
		return Consent{}, fault.New(contract.Conflict, "the login was already answered: %s", status).WithHint("begin it again in the client")
	}
	if change {
		x.Status = to
		if to == ConsentApproved && x.Expires.Before(now.Add(afterYes)) {
			x.Expires = now.Add(afterYes)
		}
	}
	return x.Consent, nil
}

// newPhrase is three words that the owner can compare at a glance.
func newPhrase() string {
	var b [3]byte
	rand.Read(b[:])
	words := make([]string, len(b))
	for i, x := range b {
		words[i] = phraseWords[int(x)%len(phraseWords)]
	}
	return strings.Join(words, "-")
}
