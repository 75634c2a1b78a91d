package httpd

import "net/http"

// begun is a response that knows whether something of it is out.
type begun struct {
	http.ResponseWriter
	out bool
}

// WriteHeader sends the header.
func (b *begun) WriteHeader(status int) {
	b.out = b.out || status >= 200
	b.ResponseWriter.WriteHeader(status)
}

// Write sends a part.
func (b *begun) Write(p []byte) (int, error) {
	b.out = true
	return b.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (b *begun) FlushError() error {
	b.out = true
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }
