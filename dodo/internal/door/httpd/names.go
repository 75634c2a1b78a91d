package httpd

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// names are those by which the server may be called, and the web pages that may call it.
type names struct {
	hosts   []string // name, or name:port; a name alone is good with any port
	origins []string
}

// newNames adds this machine's own names, and the public origin.
func newNames(hosts, origins []string, issuer string, port int) names {
	n := names{hosts: slices.Clone(hosts), origins: slices.Clone(origins)}
	for _, h := range []string{"127.0.0.1", "localhost", "[::1]"} {
		n.origins = append(n.origins, "http://"+h+":"+strconv.Itoa(port))
	}
	if issuer != "" {
		n.origins = append(n.origins, issuer)
		_, host, _ := strings.Cut(issuer, "://")
		n.hosts = append(n.hosts, host)
	}
	return n
}

// host reports whether the Host of a request is one of the server's own. A name that a page
// made lead to this machine is none (DNS rebinding).
func (n names) host(r *http.Request) bool {
	name, port := r.Host, ""
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		name, port = h, p
	}
	name = strings.Trim(name, "[]")
	if a, err := netip.ParseAddr(name); err == nil && a.IsLoopback() && a.Zone() == "" && !a.Is4In6() || strings.EqualFold(name, "localhost") {
		return true
	}
	return slices.ContainsFunc(n.hosts, func(own string) bool {
		ownName, ownPort := own, ""
		if h, p, err := net.SplitHostPort(own); err == nil {
			ownName, ownPort = h, p
		}
		return strings.EqualFold(strings.Trim(ownName, "[]"), name) && (ownPort == "" || ownPort == port)
	})
}

// embedded reports whether the page of another site makes a browser ask for something, as an
// image or in a frame. Such requests have no Origin, and all they can do is harm: begin logins
// that nobody wants, and use up what the owner's browser may ask. To follow a link is another
// matter, that is how logins begin.
func embedded(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document"
}

// origin reports whether a request comes from no web page, or from one that may call. given
// is that one.
func (n names) origin(r *http.Request) (given string, ok bool) {
	list := r.Header.Values("Origin")
	switch len(list) {
	case 0:
		return "", true
	case 1:
		return list[0], slices.Contains(n.origins, list[0])
	}
	return "", false
}
