package egress

import "net/netip"

// reach is what it takes to connect to an address.
type reach int

const (
	open     reach = iota // public
	private               // an entry for the address or for a name that has it
	loopback              // an entry for the address or for localhost
	special               // an entry for the address
	never                 // nothing
)

// A block is a part of the address space that is not for public hosts.
type block struct {
	netip.Prefix
	reach
	what string
}

// blocks are IANA's registries of special-purpose addresses (RFC 6890 with its updates), and what
// they leave to other documents: multicast, reserved space, site-local, and three addresses
// by which clouds serve metadata from ranges that are something else. The first that
// contains an address counts, so the narrow come before the wide.
var blocks = []block{
	at("0.0.0.0/8", never, "this network"),
	at("10.0.0.0/8", private, "a private network"),
	at("100.100.100.200/32", special, "a cloud's metadata"),
	at("100.64.0.0/10", private, "a carrier's shared network"),
	at("127.0.0.0/8", loopback, "this machine"),
	at("168.63.129.16/32", special, "a cloud's metadata"),
	at("169.254.0.0/16", special, "link-local, where clouds serve metadata"),
	at("172.16.0.0/12", private, "a private network"),
	at("192.0.0.0/24", special, "protocol assignments"),
	at("192.0.2.0/24", special, "documentation"),
	at("192.31.196.0/24", special, "AS112"),
	at("192.52.193.0/24", special, "multicast tunnels (AMT)"),
	at("192.88.99.0/24", never, "6to4 relays"),
	at("192.168.0.0/16", private, "a private network"),
	at("192.175.48.0/24", special, "AS112"),
	at("198.18.0.0/15", special, "benchmarks"),
	at("198.51.100.0/24", special, "documentation"),
	at("203.0.113.0/24", special, "documentation"),
	at("224.0.0.0/4", never, "multicast"),
	at("255.255.255.255/32", never, "broadcast"),
	at("240.0.0.0/4", never, "reserved"),

	at("::/128", never, "no address"),
	at("::1/128", loopback, "this machine"),
	at("::ffff:0:0/96", never, "IPv4 in another form"),
	at("::/96", never, "IPv4 in another form"),
	at("64:ff9b::/96", never, "IPv4 behind a translator (NAT64)"),
	at("64:ff9b:1::/48", never, "IPv4 behind a translator (NAT64)"),
	at("100::/64", never, "discarded"),
	at("100:0:0:1::/64", never, "a placeholder"),
	at("2001::/32", never, "IPv4 in a tunnel (Teredo)"),
	at("2001:2::/48", special, "benchmarks"),
	at("2001:10::/28", never, "identifiers (ORCHID)"),
	at("2001:20::/28", never, "identifiers (ORCHIDv2)"),
	at("2001:30::/28", never, "identifiers of drones"),
	at("2001::/23", special, "protocol assignments"),
	at("2001:db8::/32", special, "documentation"),
	at("2002::/16", never, "IPv4 in a tunnel (6to4)"),
	at("2620:4f:8000::/48", special, "AS112"),
	at("3fff::/20", special, "documentation"),
	at("2000::/3", open, ""),
	at("5f00::/16", never, "segment routing"),
	at("fd00:ec2::254/128", special, "a cloud's metadata"),
	at("fc00::/7", private, "a private network"),
	at("fe80::/10", special, "link-local"),
	at("fec0::/10", special, "site-local"),
	at("ff00::/8", never, "multicast"),
	at("::/0", never, "not in use"), // RFC 4291 2.4: global unicast is given out of 2000::/3 alone
}

func at(prefix string, r reach, what string) block {
	return block{netip.MustParsePrefix(prefix), r, what}
}

// Special says what an address is set aside for; empty when it is a public one. An IPv4
// address in mapped form is what it carries.
func Special(a netip.Addr) string {
	_, what := look(a.Unmap())
	return what
}

// look finds what it takes to reach an address, and why.
func look(a netip.Addr) (reach, string) {
	if !a.IsValid() {
		return never, "no address"
	}
	if a.Zone() != "" { // which interface a zone means is not for a caller to say
		return never, "an address with a zone"
	}
	for _, b := range blocks {
		if b.Contains(a) {
			return b.reach, b.what
		}
	}
	return open, ""
}
