package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

const (
	mostRequests = 5    // of one fetch, the first among them
	longestURL   = 2048 // bytes of an address that is gone to
)

// A page is what came back.
type page struct {
	url         *url.URL
	status      int
	contentType string
	body        []byte
	cut         bool // there was more than was to be read
	packed      bool // in a way that was not asked for
}

// parse reads an address that a caller gave, and judges what can be judged of it.
func (s *Service) parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fault.Wrap(contract.InvalidInput, err, "url is not a well-formed address").WithHint("give an address like https://example.com/page")
	}
	return u, s.check(u)
}

// check judges an address before anything is sent there.
func (s *Service) check(u *url.URL) error {
	switch {
	case u.Scheme != "https" || u.Opaque != "":
		return fault.New(contract.Forbidden, "only https addresses are fetched, not %s", quoted(u.String())).WithHint("use the page's https address")
	case u.Host == "":
		return fault.New(contract.InvalidInput, "the address has no host").WithHint("give an address like https://example.com/page")
	case u.User != nil:
		return fault.New(contract.Forbidden, "the address has a user name in it, and none is sent").WithHint("leave out what stands before the @")
	case len(u.String()) > longestURL:
		return fault.New(contract.Forbidden, "the address is longer than %d bytes", longestURL).WithHint("use a shorter address")
	}
	return s.Dialer.Check(net.JoinHostPort(u.Hostname(), portOf(u)))
}

func portOf(u *url.URL) string { return cmp.Or(u.Port(), "443") }

// fetch follows redirects to a page and reads it.
func (s *Service) fetch(ctx context.Context, u *url.URL, most int) (page, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return page{}, s.failed(ctx, ctx.Err())
	}
	for range mostRequests {
		p, next, err := s.request(ctx, u, most)
		if err != nil || next == nil {
			return p, err
		}
		u = next
	}
	return page{}, fault.New(contract.Forbidden, "the page redirects more than %d times", mostRequests-1).
		WithHint("use the address where the redirects end")
}

// request makes one request. next is where it redirects to.
func (s *Service) request(ctx context.Context, u *url.URL, most int) (p page, next *url.URL, err error) {
	at := *u
	at.Fragment, at.RawFragment = "", ""
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return p, nil, fault.Wrap(contract.InvalidInput, err, "the address cannot be asked for").WithHint("give an address like https://example.com/page")
	}
	r.Header.Set("User-Agent", "dodo")
	r.Header.Set("Accept", "text/html, text/plain;q=0.9, */*;q=0.8")
	answer, err := s.transport.RoundTrip(r)
	if err != nil {
		return p, nil, s.failed(ctx, err)
	}
	defer answer.Body.Close()
	if location := answer.Header.Get("Location"); location != "" && redirects(answer.StatusCode) {
		next, err = s.redirect(&at, location)
		return p, next, err
	}
	p = page{url: &at, status: answer.StatusCode, contentType: answer.Header.Get("Content-Type")}
	packed := answer.Header.Get("Content-Encoding") // gzip was asked for by the transport, which took it off
	p.packed = packed != "" && packed != "identity"
	p.body, err = io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if err != nil {
		return p, nil, s.failed(ctx, err)
	}
	if p.cut = len(p.body) > most; p.cut {
		p.body = p.body[:most]
	}
	return p, nil, nil
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect judges where a page leads.
func (s *Service) redirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil {
		return nil, fault.Wrap(contract.Forbidden, err, "the page redirects to %s, which is not a well-formed address", quoted(location)).WithHint("use another address")
	}
	if err := s.check(to); err != nil {
		f := *fault.From(err)
		f.Code, f.Msg = contract.Forbidden, "the page redirects: "+f.Msg
		return nil, &f
	}
	return to, nil
}

// failed gives an error of a request a code.
func (s *Service) failed(ctx context.Context, err error) error {
	var known *fault.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Wrap(contract.Timeout, err, "the page did not come within timeoutMs").WithHint("try again, with a larger timeoutMs").Retry()
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known):
		return known
	case errors.As(err, &certificate):
		return fault.Wrap(contract.Forbidden, err, "the host cannot prove who it is: its certificate is not valid").WithHint("use another host")
	}
	return fault.Wrap(contract.NotFound, err, "the host gave no usable answer by https").WithHint("look at the address; try again later").Retry()
}

// quoted shows a text from outside in a sentence.
func quoted(s string) string {
	const most = 200
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return fmt.Sprintf("%+q", s)
}
