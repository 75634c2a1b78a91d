package httpd

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// ServeHTTP is the way of every request.
func (s *Server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	defer answering(r.Context())()
	w := &begun{ResponseWriter: rw}
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p != http.ErrAbortHandler {
			s.c.Log.Error("panic", "path", r.URL.Path, "value", p, "stack", string(debug.Stack()))
		}
		if w.out || p == http.ErrAbortHandler {
			panic(http.ErrAbortHandler) // so that nobody takes what is out for whole
		}
		fail(w, http.StatusInternalServerError, "server_error", "something went wrong inside the program")
	}()
	// The one of the request before may be over. A stream moves it on.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTime))
	s.mustCome(w, r, s.requestTime)
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if !s.names.host(r) {
		fail(w, http.StatusForbidden, "forbidden", "the server is not called by that name; the owner adds names with: dodo config set allowedHosts")
		return
	}
	origin, ok := s.names.origin(r)
	if !ok || origin == "" && embedded(r) {
		fail(w, http.StatusForbidden, "forbidden", "that web page may not call this server; the owner adds origins with: dodo config set allowedOrigins")
		return
	}
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Mcp-Session-Id, MCP-Protocol-Version")
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name")
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	s.routes.ServeHTTP(w, r)
}

// health tells whether the server is there.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "it can be read alone")
		return
	}
	answer(w, http.StatusOK, s.c.Health())
}

// mustCome bounds the time for a body, also for one that nobody looks at. A request without
// one may be a stream, whose connection would be taken for broken.
func (s *Server) mustCome(w http.ResponseWriter, r *http.Request, in time.Duration) {
	if r.Body != nil && r.Body != http.NoBody {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(in)) // the end of the body ends it
	}
}

// login stands before what leads to a login at a route.
func (s *Server) login(route string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := address(r)
		if at == here {
			at += " " + route // a client that does not give up keeps no browser from the page
		} else {
			at = "elsewhere" // all of them together, so that many addresses are no way around
		}
		if wait, ok := s.logins.take(at, s.c.Now()); !ok {
			slow(w, wait)
			return
		}
		s.mustCome(w, r, s.headerTime)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.requestTime)) // of this answer alone
		next.ServeHTTP(w, r)
	})
}

// whoKey is under which a request's context has who makes it.
type whoKey struct{}

// CallerOf is who makes a request that reached the MCP handler, as [Who.Caller].
func CallerOf(r *http.Request) string { return whoOf(r).Caller }

// OwnerOf is whose the request's session is, as [Who.Owner].
func OwnerOf(r *http.Request) string { return whoOf(r).Owner }

func whoOf(r *http.Request) Who {
	who, _ := r.Context().Value(whoKey{}).(Who)
	return who
}

// mcp stands before the protocol. Who comes is looked at before anything else of a request.
func (s *Server) mcp() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.c.Locked != "" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			fail(w, http.StatusUnauthorized, "setup_required", s.c.Locked)
			return
		}
		token, sent := bearer(r)
		who, err := Who{}, errNoToken
		if token != "" {
			who, err = s.c.Auth.Verify(r.Context(), token)
		}
		if err != nil {
			s.unknown(w, r, err, sent)
			return
		}
		now := s.c.Now()
		if wait, ok := s.principals.take(who.Owner, now); !ok {
			slow(w, wait)
			return
		}
		if s.c.Closed != nil && s.c.Closed() {
			w.Header().Set("Retry-After", "2")
			fail(w, http.StatusServiceUnavailable, "workspace_switching", "no calls are taken at this moment")
			return
		}
		if !s.flying.begin(who.Owner) {
			slow(w, time.Second)
			return
		}
		defer s.flying.end(who.Owner)
		s.c.MCP.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), whoKey{}, who)))
	})
}

var errNoToken = errors.New("no token")

// unknown answers a request of nobody.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request, err error, sent bool) {
	if wait, ok := s.addresses.take(address(r), s.c.Now()); !ok {
		slow(w, wait)
		return
	}
	if errors.Is(err, errNoToken) && !sent {
		w.Header().Set("WWW-Authenticate", s.c.Auth.Challenge(nil))
		fail(w, http.StatusUnauthorized, "unauthorized", "log in first: the client finds out how from WWW-Authenticate")
		return
	}
	if f := new(fault.Error); errors.Is(err, errNoToken) || errors.As(err, &f) && f.Code == contract.AuthRequired {
		if errors.Is(err, errNoToken) {
			err = fault.New(contract.AuthRequired, "the Authorization header is not Bearer and a token")
		}
		w.Header().Set("WWW-Authenticate", s.c.Auth.Challenge(err))
		fail(w, http.StatusUnauthorized, "invalid_token", fault.From(err).Msg)
		return
	}
	s.c.Log.Error("who comes could not be found out", "cause", err)
	w.Header().Set("Retry-After", "2")
	fail(w, http.StatusServiceUnavailable, "temporarily_unavailable", "the state could not be read")
}

// bearer is the token of a request (RFC 6750, section 2.1). sent says that there was
// something, whatever it was.
func bearer(r *http.Request) (token string, sent bool) {
	list := r.Header.Values("Authorization")
	if len(list) != 1 {
		return "", len(list) > 0
	}
	scheme, token, _ := strings.Cut(list[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

// slow answers who comes too often.
func slow(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
	fail(w, http.StatusTooManyRequests, "too_many_requests", "that is too often: wait")
}

// fail answers with an error that is not one of the protocol.
func fail(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]string{"error": code, "error_description": message})
}

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil { // texts, numbers and booleans can be written
		data = []byte(`{"error":"server_error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
