package oauth

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// redirectKind is where a code goes.
type redirectKind int

const (
	redirectWeb      redirectKind = iota // a site
	redirectLoopback                     // a program of this machine that listens
	redirectCustom                       // a program of this machine that owns a scheme
)

// A redirect is an address that codes may be sent to. It is compared as it was written, so
// nothing that a browser reads another way can stand for it.
type redirect struct {
	raw  string
	kind redirectKind
	host string // with the port; of a custom scheme the scheme and ":"
	path string // of a loopback address: all behind the port
}

// redirectBytes bounds a redirect.
const redirectBytes = 2048

// knownSchemes are the schemes without a dot that clients in use have. Schemes with one are
// private by their form (RFC 8252, 7.1).
var knownSchemes = []string{"cursor", "vscode", "vscode-insiders", "windsurf"}

var (
	schemeForm = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)
	hostForm   = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)*$`)
)

// loopbackHosts are the hosts whose port does not count. Other addresses of the machine are
// not among them.
var loopbackHosts = []string{"127.0.0.1", "[::1]", "localhost"}

// answerNames are what stands in the query of an answer. A redirect must not bring its own.
var answerNames = []string{"code", "state", "iss", "error", "error_description", "error_uri"}

// parseRedirect judges a redirect that somebody registers, or asks for. why says in a few
// words what is wrong.
func parseRedirect(raw string) (r redirect, why string) {
	if raw == "" || len(raw) > redirectBytes {
		return r, "it is empty or longer than 2048 bytes"
	}
	for _, c := range []byte(raw) {
		if c <= 0x20 || c >= 0x7f || strings.IndexByte("\"'<>\\^`{|}*", c) >= 0 {
			return r, "it has a character that no address has, or *"
		}
	}
	if strings.Contains(raw, "#") {
		return r, "it has a fragment"
	}
	scheme, rest, ok := strings.Cut(raw, ":")
	if !ok || !schemeForm.MatchString(scheme) {
		return r, "it has no scheme, or one with capital letters"
	}
	u, err := url.Parse(raw)
	if err != nil {
		return r, "it is no address"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return r, "its query cannot be read"
	}
	for name := range query {
		if slices.Contains(answerNames, name) {
			return r, "its query has a name that the answer has"
		}
	}
	switch {
	case scheme == "http" || scheme == "https":
		return parseHTTP(raw, scheme, rest)
	case !strings.Contains(scheme, ".") && !slices.Contains(knownSchemes, scheme):
		return r, "its scheme is neither https, nor http on loopback, nor one that a program has for itself, such as com.example.app"
	case !strings.HasPrefix(rest, "/"):
		return r, "its scheme is not followed by a slash"
	case u.User != nil:
		return r, "it has a user in it"
	}
	return redirect{raw: raw, kind: redirectCustom, host: scheme + ":"}, ""
}

// parseHTTP takes an http or https address apart by hand: what is not exactly a host, a port
// and a path is refused, and not understood in some way.
func parseHTTP(raw, scheme, rest string) (r redirect, why string) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return r, "its scheme is not followed by two slashes"
	}
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	place, path := rest[:end], rest[end:]
	if strings.ContainsAny(place, "@%") {
		return r, "it has a user in it, or a host with %"
	}
	host, port, ok := splitPort(place)
	if !ok {
		return r, "its port is no number from 1 to 65535"
	}
	if scheme == "http" {
		if !slices.Contains(loopbackHosts, host) {
			return r, "http is for 127.0.0.1, [::1] and localhost only; use https"
		}
		return redirect{raw: raw, kind: redirectLoopback, host: place, path: path}, ""
	}
	if !plainHost(host) {
		return r, "its host is no plain name in small letters and no plain address"
	}
	if port == "443" {
		return r, "it names the port that https has anyway"
	}
	return redirect{raw: raw, kind: redirectWeb, host: place}, ""
}

// splitPort takes the port from a host. One without a port has "".
func splitPort(place string) (host, port string, ok bool) {
	i := strings.LastIndexByte(place, ':')
	if i < 0 || strings.HasSuffix(place, "]") {
		return place, "", place != ""
	}
	host, port = place[:i], place[i+1:]
	n, err := strconv.ParseUint(port, 10, 16)
	return host, port, err == nil && n > 0 && port[0] != '0' && host != ""
}

// plainHost reports whether a host is a name or an address in the one form it has.
func plainHost(host string) bool {
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		return ok && err == nil && a.Is6() && a.Zone() == "" && !a.Is4In6() && a.String() == inner
	}
	if len(host) > 253 || !hostForm.MatchString(host) {
		return false
	}
	// What ends in a number is an address for browsers: in one form only.
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.Trim(last, "0123456789") != "" && !numeric(last) {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4()
}

// numeric reports whether browsers read the last part of a host as a number: 0x and hex
// digits.
func numeric(last string) bool {
	digits, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(digits, "0123456789abcdef") == ""
}

// fits reports whether a code may go to the redirect that was asked for, of those that are
// registered: the same bytes, but for the port of a loopback address (RFC 8252, 7.3).
func fits(registered []string, asked redirect) bool {
	for _, raw := range registered {
		if raw == asked.raw {
			return true
		}
		known, why := parseRedirect(raw)
		if why != "" || known.kind != redirectLoopback || asked.kind != redirectLoopback {
			continue
		}
		a, _, _ := splitPort(known.host)
		b, _, _ := splitPort(asked.host)
		if a == b && known.path == asked.path {
			return true
		}
	}
	return false
}

// stays says that a code does not leave the machine whose browser carries it.
func (r redirect) stays() bool {
	if r.kind != redirectWeb {
		return true
	}
	host, _, _ := splitPort(r.host)
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && a.IsLoopback()
}

// with adds an answer to a redirect.
func (r redirect) with(answer url.Values) string {
	mark := "?"
	if i := strings.IndexByte(r.raw, '?'); i >= 0 {
		mark = "&"
		if i == len(r.raw)-1 {
			mark = ""
		}
	}
	return r.raw + mark + answer.Encode()
}

// source is the redirect in the words of a content security policy, so that a form may lead
// there. What has no exact word is its scheme.
func (r redirect) source() string {
	switch {
	case r.kind == redirectCustom:
		return r.host
	case strings.HasPrefix(r.host, "["):
		return r.raw[:strings.IndexByte(r.raw, ':')+1]
	}
	return r.raw[:strings.IndexByte(r.raw, ':')] + "://" + r.host
}
