package egress

import (
	"net/http"
	"time"
)

// Client is for requests over HTTP that go where the dialer lets them. The system's proxy is
// not asked, and no connection is kept.
func (d *Dialer) Client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: timeout, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
	}}
}
