package httpd

import (
	"net/http"
	"path"
	"strings"
)

// routing has every route.
func (s *Server) routing() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/healthz", s.health)
	m.Handle("/mcp", s.mcp())
	m.Handle("/mcp/{$}", s.mcp())
	if s.c.Auth != nil {
		login := s.c.Auth.Handler()
		for _, p := range s.c.Auth.Paths() {
			m.Handle(p, s.login(p, login))
		}
	}
	m.HandleFunc("/", nothing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The library would lead a path with detours to the one without.
		if p := r.URL.Path; p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
			nothing(w, r)
			return
		}
		m.ServeHTTP(w, r)
	})
}

func nothing(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusNotFound, "not_found", "nothing is here")
}
