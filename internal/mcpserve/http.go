package mcpserve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPOptions say how a server is shown over HTTP. Who may come in at all, and by which
// names, is decided in front of it.
type HTTPOptions struct {
	// Caller says who makes a request: it goes into the call that the request makes. Nil:
	// [Options.Caller].
	Caller func(*http.Request) string
	// Owner says whose a session is that a request opens. Another owner's requests do not
	// find it. Nil: all are one's.
	Owner func(*http.Request) string

	MaxBody     int64         // bytes of a request; 0 means MaxFrame
	MaxSessions int           // in all; 0 means 1024
	MaxOwned    int           // sessions of one owner, of which the least lately used makes room; 0 means 32
	Idle        time.Duration // after which a session ends; 0 means 30 minutes
	Heartbeat   time.Duration // after which a stream that is silent is kept awake; 0 means 15 seconds
}

// HTTP shows a server over streamable HTTP, to clients of both eras: those that open a
// session, and those whose every request stands alone (revision 2026-07-28 on).
type HTTP struct {
	s       *Server
	o       HTTPOptions
	old     http.Handler // with sessions
	modern  http.Handler
	pending sync.WaitGroup // requests that are being answered
	large   lanes

	mu        sync.Mutex // guards what follows
	closed    bool
	sessions  map[string]*session                  // of the old era, by id
	listeners map[*http.Request]context.CancelFunc // of streams that end only when they are ended
}

// session is one of the old era.
type session struct {
	owner string
	used  time.Time
	busy  int // requests of it that are being answered
}

// callerKey is where a request carries its caller through the SDK, which hands on the header
// of each. No client can send a field of that name.
const callerKey = ":caller"

// ownerKey is the same for the owner.
const ownerKey = ":owner"

// sessionHeader names a session.
const sessionHeader = "Mcp-Session-Id"

const ending = "the server is ending"

// HTTP returns the handler. Call Close.
func (s *Server) HTTP(o HTTPOptions) *HTTP {
	if o.Caller == nil {
		o.Caller = func(*http.Request) string { return s.opts.Caller }
	}
	if o.Owner == nil {
		o.Owner = func(*http.Request) string { return "" }
	}
	if o.MaxBody <= 0 {
		o.MaxBody = int64(s.opts.MaxFrame)
	}
	o.MaxSessions = orDefault(o.MaxSessions, 1024)
	o.MaxOwned = orDefault(o.MaxOwned, 32)
	if o.Idle <= 0 {
		o.Idle = 30 * time.Minute
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	h := &HTTP{s: s, o: o, sessions: map[string]*session{}, listeners: map[*http.Request]context.CancelFunc{}}
	get := func(*http.Request) *mcp.Server { return s.sdk }
	// Host and Origin are looked at in front; -1: the body is bounded here.
	h.old = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		SessionTimeout: o.Idle, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, Logger: s.opts.Log,
	})
	h.modern = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: -1, PropagateRequestCancellation: true, Logger: s.opts.Log,
	})
	return h
}

// ServeHTTP answers one request.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.begin() {
		refuse(w, http.StatusServiceUnavailable, ending)
		return
	}
	defer h.pending.Done()
	r = r.Clone(r.Context())
	r.Header[callerKey], r.Header[ownerKey] = []string{h.o.Caller(r)}, []string{h.o.Owner(r)}
	leave, ok := h.large.enter(r, h.o.Owner(r))
	if !ok {
		return
	}
	defer leave()
	k, ok := h.read(w, r)
	if !ok {
		return
	}
	if k.listens {
		var done func()
		if r, done, ok = h.listen(r); !ok {
			refuse(w, http.StatusServiceUnavailable, ending)
			return
		}
		defer done()
	}
	awake := wake(w, h.o.Heartbeat)
	defer awake.stop()
	if k.modern {
		h.modern.ServeHTTP(awake, r)
		return
	}
	h.serveOld(awake, r, k)
}

// begin counts a request in, unless the server is ending.
func (h *HTTP) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.pending.Add(1)
	return true
}

// listen makes a request end when the server does.
func (h *HTTP) listen(r *http.Request) (listening *http.Request, done func(), ok bool) {
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		cancel()
		return nil, nil, false
	}
	h.listeners[r] = cancel
	return r, func() {
		cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.listeners, r)
	}, true
}

// kind is what decides which way a request goes.
type kind struct {
	modern     bool
	initialize bool
	listens    bool // its answer is a stream without an end
}

// read bounds the body, and finds out which era a request is of. Where it fails it has
// answered.
func (h *HTTP) read(w http.ResponseWriter, r *http.Request) (k kind, ok bool) {
	version := r.Header.Get("MCP-Protocol-Version")
	if r.Method != http.MethodPost {
		k.modern = version >= firstModern // which answers that there is nothing to get
		k.listens = r.Method == http.MethodGet
		return k, true
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.o.MaxBody))
	if err == nil { // who stands in front may have set a deadline, which would end the answer, too
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // tests may have a connection without one
	}
	if tooBig := new(http.MaxBytesError); errors.As(err, &tooBig) {
		refuse(w, http.StatusRequestEntityTooLarge, "payload_too_large")
		return k, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "the request could not be read")
		return k, false
	}
	p, err := peek(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not valid JSON: "+err.Error())
		return k, false
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	if p.batch && p.initialize { // each would be a session
		refuse(w, http.StatusBadRequest, "initialize must be sent by itself")
		return k, false
	}
	if p.initialize && len(body) > largeBody { // the session keeps it
		refuse(w, http.StatusRequestEntityTooLarge, "payload_too_large")
		return k, false
	}
	k.initialize, k.listens = p.initialize, p.method == "subscriptions/listen"
	k.modern = version >= firstModern || p.method == "server/discover" || p.versioned
	if r.Header.Get(sessionHeader) != "" && version != "" && version < firstModern {
		k.modern = false
	}
	return k, true
}

// serveOld answers a request of the era of sessions.
func (h *HTTP) serveOld(w http.ResponseWriter, r *http.Request, k kind) {
	owner, id := h.o.Owner(r), r.Header.Get(sessionHeader)
	if id != "" && k.initialize {
		// The client begins anew, whatever it remembers.
		r.Header.Del(sessionHeader)
		id = ""
	}
	if id == "" {
		if k.initialize && !h.room(owner) {
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, "too many sessions are open")
			return
		}
		h.old.ServeHTTP(&noting{ResponseWriter: w, note: func(id string) { h.opened(id, owner) }}, r)
		return
	}
	if !h.use(id, owner) {
		refuse(w, http.StatusNotFound, "session not found")
		return
	}
	defer h.used(id)
	h.old.ServeHTTP(w, r)
}

// room makes room for one more session of an owner.
func (h *HTTP) room(owner string) bool {
	h.forget()
	h.mu.Lock()
	var mine []string
	for id, x := range h.sessions {
		if x.owner == owner {
			mine = append(mine, id)
		}
	}
	full := len(h.sessions) >= h.o.MaxSessions
	if len(mine) < h.o.MaxOwned && !full {
		h.mu.Unlock()
		return true
	}
	oldest := ""
	for _, id := range mine {
		if x := h.sessions[id]; x.busy == 0 && (oldest == "" || x.used.Before(h.sessions[oldest].used)) {
			oldest = id
		}
	}
	if oldest == "" && len(mine) > 0 { // all of them have a stream open, as clients do that only listen
		oldest = slices.MinFunc(mine, func(a, b string) int { return h.sessions[a].used.Compare(h.sessions[b].used) })
	}
	delete(h.sessions, oldest)
	h.mu.Unlock()
	if oldest == "" {
		return false
	}
	h.end(func(id string) bool { return id == oldest })
	return true
}

// forget drops the sessions that the SDK has ended. Those that are opened meanwhile stay: they
// are not among those that were known before it was asked which live.
func (h *HTTP) forget() {
	h.mu.Lock()
	known := maps.Clone(h.sessions)
	h.mu.Unlock()
	for x := range h.s.sdk.Sessions() {
		delete(known, x.ID())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range known {
		if x := h.sessions[id]; x != nil && x.busy == 0 {
			delete(h.sessions, id)
		}
	}
}

func (h *HTTP) opened(id, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions[id] = &session{owner: owner, used: h.s.opts.Now()}
}

// use takes a session for a request, if it is the owner's.
func (h *HTTP) use(id, owner string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.sessions[id]
	if x == nil || x.owner != owner {
		return false
	}
	x.busy++
	x.used = h.s.opts.Now()
	return true
}

func (h *HTTP) used(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.sessions[id]; x != nil {
		x.busy--
		x.used = h.s.opts.Now()
	}
}

// end closes sessions.
func (h *HTTP) end(which func(id string) bool) {
	var all sync.WaitGroup
	for x := range h.s.sdk.Sessions() {
		if which(x.ID()) {
			all.Go(func() { _ = x.Close() }) // its streams end with it
		}
	}
	all.Wait()
}

// Close takes no more requests, tells calls to end ([op.ErrEnding]) and waits for their answers
// until ctx is done, and ends every session with its streams. It is the end of the server over
// HTTP.
func (h *HTTP) Close(ctx context.Context) {
	h.mu.Lock()
	h.closed = true
	for _, end := range h.listeners {
		end()
	}
	h.mu.Unlock()
	h.s.ended.Do(func() { close(h.s.over) }) // calls are told
	done := make(chan struct{})
	go func() { h.pending.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	ended := make(chan struct{})
	go func() { h.end(func(string) bool { return true }); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// refuse answers with an error that is not one of a request's own.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	data, _ := jsontext.AppendQuote(nil, why)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":` + string(data) + `}}`))
}
