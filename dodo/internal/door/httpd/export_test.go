package httpd

import "time"

// SetTimes makes a server's bounds short.
func (s *Server) SetTimes(header, request time.Duration) {
	s.headerTime, s.requestTime = header, request
	s.http.ReadHeaderTimeout = header
}

// ListenFew is Listen with so many places for connections.
func ListenFew(places int) (*Listener, error) { return listen(0, places) }
