package egress

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A target is where a connection is to go: a name or an address, and a port.
type target struct {
	name string // as it is compared: lower case, no dot at the end; empty for an address
	addr netip.Addr
	port uint16
}

// String is the target in the form of an entry. It is safe to show and to paste.
func (t target) String() string { return net.JoinHostPort(t.host(), strconv.Itoa(int(t.port))) }

func (t target) host() string {
	if t.name != "" {
		return t.name
	}
	return t.addr.String()
}

// parseTarget reads host:port. why says what is wrong with it.
func parseTarget(s string) (t target, why string) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return t, "it is not host:port"
	}
	if strings.HasPrefix(s, "[") && !strings.Contains(host, ":") {
		return t, "only an IPv6 address stands in brackets"
	}
	if t.port, why = parsePort(port); why != "" {
		return t, why
	}
	t.name, t.addr, why = parseHost(host)
	return t, why
}

func parsePort(s string) (uint16, string) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, "its port is not a number from 1 to 65535"
	}
	return uint16(n), ""
}

// parseHost reads a name or an address without brackets. Whatever some program takes for an
// address and this one would take for a name is refused: 0x7f.1, 2130706433, 0177.0.0.1.
func parseHost(s string) (name string, addr netip.Addr, why string) {
	s = strings.ToLower(strings.TrimSuffix(s, "."))
	if addr, err := netip.ParseAddr(s); err == nil {
		if addr.Zone() != "" {
			return "", netip.Addr{}, "its address has a zone"
		}
		return "", addr.Unmap(), ""
	}
	return s, netip.Addr{}, badName(s)
}

// badName says why a text is not the name of a host; empty when it is one.
func badName(s string) string {
	switch {
	case s == "":
		return "it has no host"
	case len(s) > 253:
		return "its host is longer than 253 bytes"
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "its host is not a well-formed name"
		}
		for _, c := range []byte(label) {
			switch {
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			case c >= 0x80:
				return "its host is not ASCII; write such a name in its xn-- form"
			default:
				return "its host is not a well-formed name"
			}
		}
		last = label
	}
	if numeric(last) {
		return "its host ends like a number, and is no address in its usual form"
	}
	return ""
}

// numeric reports whether a last label makes programs read a host as an IPv4 address: all
// digits, or hexadecimal after 0x (the URL standard, "ends in a number").
func numeric(label string) bool {
	hex, ok := strings.CutPrefix(label, "0x")
	if ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return strings.Trim(label, "0123456789") == ""
}

// local reports whether a name is one of the machine or its own network, whatever a
// resolver says of it.
func local(name string) bool {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return true
	}
	switch name[i+1:] {
	case "localhost", "local", "internal":
		return true
	}
	return false
}

// ownName reports whether a name is one of the loopback interface.
func ownName(name string) bool { return name == "localhost" || strings.HasSuffix(name, ".localhost") }
