package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"localmcp/dodo/internal/contract"
)

// Issuer is the origin under which clients know the server, and the public one when a
// public address is set. The fault is that of a public address that cannot be used.
func (c Config) Issuer(port int) (issuer string, err error) {
	if c.PublicURL == "" {
		return fmt.Sprintf("http://127.0.0.1:%d", port), nil
	}
	if why, hint := publicURL(c.PublicURL); why != "" {
		return "", refused("publicUrl", "%s", why).WithHint("%s", hint)
	}
	return strings.TrimSuffix(c.PublicURL, "/"), nil
}

const publicHint = "give the origin alone, such as https://dodo.example.com: dodo config set publicUrl ORIGIN"

// publicURL judges the origin under which the server is known elsewhere.
func publicURL(word string) (why, hint string) {
	if why := badOrigin(strings.TrimSuffix(word, "/")); why != "" {
		return why, publicHint
	}
	if !strings.HasPrefix(word, "https://") {
		return "clients elsewhere reach a server by https alone", publicHint
	}
	return "", ""
}

// origin judges the origin of a web page.
func origin(word string) (why, hint string) {
	if why := badOrigin(word); why != "" {
		return why, "give scheme, host and, where it is not the usual one, port: https://app.example.com"
	}
	return "", ""
}

// badOrigin says what keeps a word from being an origin (RFC 6454, section 6.2): a scheme of
// the web, a host in lower case, a port that is not the scheme's own.
func badOrigin(word string) string {
	u, err := url.Parse(word)
	switch {
	case err != nil || len(word) > maxPattern:
		return "it is not a web address"
	case u.Scheme != "https" && u.Scheme != "http":
		return "it must begin with https:// or http://"
	case u.User != nil:
		return "it must not name a user"
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.ContainsAny(word, "#"):
		return "it must be an origin: nothing behind the host and the port"
	case !isHost(u.Hostname()):
		return "its host is not a name in lower case or an address"
	case u.Host != strings.ToLower(u.Host), strings.HasSuffix(u.Host, ":"):
		return "its host is not a name in lower case or an address"
	case u.Port() == map[string]string{"https": "443", "http": "80"}[u.Scheme]:
		return "the port is the usual one of its scheme, and is left out in an origin"
	}
	if p := u.Port(); p != "" && !isPort(p) {
		return "its port is not a number from 1 to 65535"
	}
	return ""
}

// hostName judges a name by which the server is called.
func hostName(word string) (why, hint string) {
	host, port := word, ""
	if h, p, err := net.SplitHostPort(word); err == nil {
		host, port = h, p
		if !isPort(port) {
			host = ""
		}
	}
	if !isHost(host) {
		return strconv.QuoteToASCII(word) + " is not a name in lower case or an address", "give it as clients send it, such as dodo.example.com or dodo.example.com:8443"
	}
	return "", ""
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 65535 && s[0] != '0' && s[0] != '+'
}

// isHost reports whether a word is a name of the DNS in lower case, or an address.
func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return !strings.Contains(s, "%")
	}
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return true
}

func projectID(word string) (why, hint string) {
	if !contract.IsProjectID(word) {
		return "it is not the id of a project", "`dodo project list` shows them"
	}
	return "", ""
}
