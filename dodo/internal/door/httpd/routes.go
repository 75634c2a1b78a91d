package httpd

import (
	"net/http"
)

// routing has every route.
func (s *Server) routing() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("/healthz", s.health)
	m.Handle("/mcp", s.mcp())
	m.Handle("/mcp/{$}", s.mcp())
	if s.c.Auth != nil {
		login := s.login(s.c.Auth.Handler())
		for _, p := range s.c.Auth.Paths() {
			m.Handle(p, login)
		}
	}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "not_found", "nothing is here")
	})
	return m
}
