package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// What is known about the server, below the address of its origin.
const (
	resourceMetadata = "/.well-known/oauth-protected-resource"
	serverMetadata   = "/.well-known/oauth-authorization-server"
	openidMetadata   = "/.well-known/openid-configuration"
)

// An endpoint is what answers at some paths.
type endpoint struct {
	paths   []string
	methods map[string]http.HandlerFunc
	open    bool // pages of any site may call it: it looks at no cookie
}

// route makes the table of all that is answered.
func (s *Server) route() {
	meta, resource := s.serverDocument(), s.resourceDocument()
	table := []endpoint{
		{paths: variants(resourceMetadata), methods: get(serve(resource)), open: true},
		// Clients that leave out the document of the resource look below its path, too. It is the
		// same server, with the one name it has.
		{paths: variants(serverMetadata), methods: get(serve(meta)), open: true},
		{paths: variants(openidMetadata), methods: get(serve(meta)), open: true},
		{paths: []string{"/jwks"}, methods: get(s.jwks), open: true},
		{paths: []string{"/auth", "/authorize"}, methods: map[string]http.HandlerFunc{http.MethodGet: s.authorize, http.MethodPost: s.authorize}},
		{paths: []string{"/token"}, methods: post(s.token), open: true},
		{paths: []string{"/token/revocation"}, methods: post(s.revocation), open: true},
		{paths: []string{"/interaction/{id}"}, methods: get(s.page)},
		{paths: []string{"/interaction/{id}/status"}, methods: get(s.status)},
		{paths: []string{"/interaction/{id}/complete"}, methods: post(s.complete)},
		{paths: []string{"/interaction/page.js"}, methods: get(asset("page.js", "text/javascript; charset=utf-8"))},
		{paths: []string{"/interaction/page.css"}, methods: get(asset("page.css", "text/css; charset=utf-8"))},
	}
	if s.cfg.Registration {
		table = append(table, endpoint{paths: []string{"/register"}, methods: post(s.register), open: true})
	}
	s.mux = http.NewServeMux()
	for _, e := range table {
		for _, path := range e.paths {
			s.paths = append(s.paths, path)
			s.mux.Handle(path, e)
		}
	}
}

// variants are where clients look for a document about /mcp.
func variants(document string) []string {
	return []string{document, document + "/mcp", "/mcp" + document}
}

func get(h http.HandlerFunc) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{http.MethodGet: h, http.MethodHead: h}
}

func post(h http.HandlerFunc) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{http.MethodPost: h}
}

// ServeHTTP answers the methods an endpoint has.
func (e endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	methods := make([]string, 0, len(e.methods)+1)
	for m := range e.methods {
		methods = append(methods, m)
	}
	slices.Sort(methods)
	if e.open {
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After")
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, MCP-Protocol-Version")
			h.Set("Access-Control-Max-Age", "3600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	do := e.methods[r.Method]
	if do == nil {
		h.Set("Allow", strings.Join(methods, ", "))
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "use "+strings.Join(methods, " or "))
		return
	}
	do(w, r)
}
