package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// longestEntry is how long an entry may be, in bytes: a name, a star and a port.
const longestEntry = 270

// An entry is one line of the owner's rules.
type entry struct {
	all    bool         // everything public
	name   string       // a name; empty for addresses
	below  bool         // the names below it instead
	prefix netip.Prefix // addresses
	port   uint16       // 0: none was named
}

// CheckEntry says whether a text is an entry of the rules. The fault names what is wrong.
func CheckEntry(s string) error {
	_, err := parseEntry(s)
	return err
}

func parseEntry(s string) (entry, error) {
	e, why := readEntry(s)
	if why != "" {
		return entry{}, fault.New(contract.InvalidInput, "%s cannot be used: %s", quoted(s), why).
			WithHint("write host or host:port, where host is a name, *.name, an address, a range such as 10.0.0.0/8, or * for everything public")
	}
	return e, nil
}

func readEntry(s string) (e entry, why string) {
	switch {
	case s == "":
		return e, "it is empty"
	case len(s) > longestEntry:
		return e, "it is longer than " + strconv.Itoa(longestEntry) + " bytes"
	case strings.Contains(s, "://"):
		return e, "it is a URL; give its host alone"
	}
	host, port, why := cutPort(s)
	if why != "" {
		return e, why
	}
	if port != "" {
		if e.port, why = parsePort(port); why != "" {
			return e, why
		}
	}
	return e, e.setHost(host)
}

// cutPort takes the port off. An IPv6 address has one only behind brackets.
func cutPort(s string) (host, port, why string) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, rest, closed := strings.Cut(inner, "]")
		if !closed || !strings.Contains(host, ":") {
			return "", "", "brackets are for IPv6 addresses, as in [fd00::7]:443"
		}
		if rest == "" {
			return host, "", ""
		}
		port, ok := strings.CutPrefix(rest, ":")
		if !ok || port == "" {
			return "", "", "only a port may follow the brackets"
		}
		return host, port, ""
	}
	if strings.Count(s, ":") > 1 {
		return s, "", ""
	}
	host, port, ok := strings.Cut(s, ":")
	if ok && port == "" {
		return "", "", "its port is empty"
	}
	return host, port, ""
}

func (e *entry) setHost(host string) (why string) {
	if host == "*" {
		e.all = true
		return ""
	}
	if strings.Contains(host, "/") {
		return e.setRange(host)
	}
	if below, ok := strings.CutPrefix(host, "*."); ok {
		e.below, host = true, below
	}
	name, addr, why := parseHost(host)
	switch {
	case why != "":
		return why
	case name != "":
		e.name = name
	case e.below:
		return "no name stands below an address"
	default:
		e.prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	return ""
}

func (e *entry) setRange(s string) (why string) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return "it is not a range such as 10.0.0.0/8"
	case p.Addr().Is4In6():
		return "write a range of IPv4 addresses in its usual form"
	case p.Masked() != p:
		return "its address has bits beyond the mask; the range is " + p.Masked().String()
	case p.Bits() == 0:
		return "it names every address, this machine's too; * is everything public"
	}
	e.prefix = p
	return ""
}

// names reports whether an entry names a host by its name.
func (e entry) names(name string) bool {
	if e.below {
		return strings.HasSuffix(name, "."+e.name)
	}
	return e.name != "" && e.name == name
}

// quoted shows a text from outside in a sentence.
func quoted(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[:most], "")) + "…"
	}
	return strconv.QuoteToASCII(s)
}
