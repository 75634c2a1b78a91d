package egress_test

import (
	"net/netip"
	"testing"

	"localmcp/dodo/internal/ground/egress"
)

// Case 60: loopback, private, link-local and metadata addresses of both families: not public, reached by no proxy.
//
// TestSpecialRanges walks both edges of every range that is set aside: its first and last
// address are special, those just outside are what they are.
func TestSpecialRanges(t *testing.T) {
	for _, c := range []struct {
		first, last   string
		before, after bool // whether the neighbours are public
	}{
		{"0.0.0.0", "0.255.255.255", false, true},
		{"10.0.0.0", "10.255.255.255", true, true},
		{"100.64.0.0", "100.127.255.255", true, true},
		{"127.0.0.0", "127.255.255.255", true, true},
		{"168.63.129.16", "168.63.129.16", true, true},
		{"169.254.0.0", "169.254.255.255", true, true},
		{"172.16.0.0", "172.31.255.255", true, true},
		{"192.0.0.0", "192.0.0.255", true, true},
		{"192.0.2.0", "192.0.2.255", true, true},
		{"192.31.196.0", "192.31.196.255", true, true},
		{"192.52.193.0", "192.52.193.255", true, true},
		{"192.88.99.0", "192.88.99.255", true, true},
		{"192.168.0.0", "192.168.255.255", true, true},
		{"192.175.48.0", "192.175.48.255", true, true},
		{"198.18.0.0", "198.19.255.255", true, true},
		{"198.51.100.0", "198.51.100.255", true, true},
		{"203.0.113.0", "203.0.113.255", true, true},
		{"224.0.0.0", "239.255.255.255", true, false},
		{"240.0.0.0", "255.255.255.255", false, false},
		{"::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, true},
		{"64:ff9b::", "64:ff9b::ffff:ffff", false, false},
		{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", false, false},
		{"100::", "100::ffff:ffff:ffff:ffff", false, false},
		{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", true, true},
		{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true, true},
		{"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, true},
		{"2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", true, true},
		{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", true, true},
		{"4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true, false},
		{"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
		{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false, false},
	} {
		first, last := netip.MustParseAddr(c.first), netip.MustParseAddr(c.last)
		for _, a := range []netip.Addr{first, last} {
			if egress.Special(a) == "" {
				t.Errorf("%s is public", a)
			}
		}
		if a := first.Prev(); a.IsValid() && (egress.Special(a) == "") != c.before {
			t.Errorf("%s, before %s: %q", a, first, egress.Special(a))
		}
		if a := last.Next(); a.IsValid() && (egress.Special(a) == "") != c.after {
			t.Errorf("%s, after %s: %q", a, last, egress.Special(a))
		}
	}
}

// Case 60: such an address inside another one (mapped, NAT64, 6to4, Teredo): judged as what it carries, or refused.
//
// TestSpecialForms: single addresses that one may come with, and what they are.
func TestSpecialForms(t *testing.T) {
	for s, public := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "93.184.216.34": true, "2606:4700:4700::1111": true, "2a00:1450:4001::1": true,
		"::ffff:8.8.8.8": true, "::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::ffff:a9fe:a9fe": false,
		"::127.0.0.1": false, "::8.8.8.8": false, "64:ff9b::8.8.8.8": false, "64:ff9b::7f00:1": false, "64:ff9b:1::a00:1": false,
		"2002:7f00:1::": false, "2002:808:808::": false, "2001:0:4136:e378::": false, "fe80::1%eth0": false, "2606:4700:4700::1111%eth0": false,
		"100.100.100.200": false, "192.0.0.192": false, "fd00:ec2::254": false, "2001:4:112::1": false, "2001:20::1": false, "2001:3::1": false,
		"255.255.255.255": false, "2001:200::1": true, "::": false, "::1": false, "100:0:0:1::1": false,
	} {
		if got := egress.Special(netip.MustParseAddr(s)) == ""; got != public {
			t.Errorf("%s: public %v: %q", s, got, egress.Special(netip.MustParseAddr(s)))
		}
	}
	if egress.Special(netip.Addr{}) == "" {
		t.Error("no address is public")
	}
}
