package egress_test

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/ground/egress"
)

// FuzzJudge: whatever a caller names and a resolver answers, without an entry for it nothing
// but a public address is connected to, by port 80 or 443; and only one that was answered.
func FuzzJudge(f *testing.F) {
	for _, a := range []string{"127.0.0.1", "::1", "::ffff:10.0.0.1", "64:ff9b::1.1.1.1", "2002:7f00:1::", "2606:4700::1111", "8.8.8.8", "fe80::1"} {
		b := netip.MustParseAddr(a).As16()
		f.Add("example.com:443", b[:], []byte{1})
		f.Add(a+":443", b[:], []byte{})
		f.Add("["+a+"]:80", b[:], []byte{})
	}
	for _, s := range []string{"0x7f.1:443", "2130706433:80", "0177.1:80", "a@127.0.0.1:80", "localhost:80", "１２７.0.0.1:80", "127.0.0.1%00.com:80", "[::ffff:7f00:1]:443"} {
		f.Add(s, []byte{8, 8, 8, 8}, []byte{})
	}
	f.Fuzz(func(t *testing.T, to string, one, two []byte) {
		var answers []netip.Addr
		for _, b := range [][]byte{one, two} {
			if a, ok := netip.AddrFromSlice(b); ok {
				answers = append(answers, a)
			}
		}
		var dialed []netip.AddrPort
		d := dialer(t, egress.Config{
			Allow:   []string{"*", "127.9.9.9:9999"},
			Resolve: func(context.Context, string) ([]netip.Addr, error) { return answers, nil },
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				dialed = append(dialed, netip.MustParseAddrPort(address))
				return pretend(address), nil
			},
		})
		c, err := d.DialContext(t.Context(), "tcp", to)
		if err == nil {
			_ = c.Close()
		}
		for _, at := range dialed {
			a := at.Addr()
			if at == netip.MustParseAddrPort("127.9.9.9:9999") {
				continue
			}
			if at.Port() != 80 && at.Port() != 443 {
				t.Errorf("%q: port %d", to, at.Port())
			}
			if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is4In6() || a.Zone() != "" || specialByHand(a) {
				t.Errorf("%q with %v: dialed %s", to, answers, at)
			}
			literal, err := netip.ParseAddrPort(to)
			if !(err == nil && literal.Addr().Unmap() == a) && !slices.ContainsFunc(answers, func(b netip.Addr) bool { return b.Unmap() == a }) &&
				to != netip.AddrPortFrom(a, at.Port()).String() && to != a.String()+".:80" && to != a.String()+".:443" {
				t.Errorf("%q with %v: dialed %s, which nobody named", to, answers, at)
			}
		}
	})
}

// specialByHand is the table once more, in bytes.
func specialByHand(a netip.Addr) bool {
	if a.Is4() {
		b := a.As4()
		switch {
		case b[0] == 0, b[0] == 10, b[0] == 127, b[0] >= 224, b[0] == 100 && b[1]&0xc0 == 64, b[0] == 169 && b[1] == 254,
			b[0] == 172 && b[1]&0xf0 == 16, b[0] == 192 && b[1] == 168, b[0] == 198 && b[1]&0xfe == 18:
			return true
		}
		three := [3]byte(b[:3])
		return slices.Contains([][3]byte{{192, 0, 0}, {192, 0, 2}, {192, 31, 196}, {192, 52, 193}, {192, 88, 99}, {192, 175, 48}, {198, 51, 100}, {203, 0, 113}}, three) ||
			b == [4]byte{168, 63, 129, 16}
	}
	b := a.As16()
	return b[0]&0xe0 != 0x20 || b[0] == 0x20 && b[1] == 2 || b[0] == 0x20 && b[1] == 1 && b[2] <= 1 || b[0] == 0x20 && b[1] == 1 && b[2] == 0x0d && b[3] == 0xb8 ||
		b[0] == 0x3f && b[1] == 0xff && b[2]&0xf0 == 0 || [6]byte(b[:6]) == [6]byte{0x26, 0x20, 0, 0x4f, 0x80, 0}
}

// FuzzEntry: what CheckEntry takes makes a dialer, and an entry that is not for addresses
// opens no link-local one, whoever's name has it.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{"example.com", "*.example.com:22", "*", "10.0.0.0/8:5432", "[fd00::/8]:443", "fd00::7", "http://x", "0x7f.1", "[::ffff:1.2.3.4]:80", "a:b:c", "other.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		byAddress := strings.ContainsAny(s, "/[") || strings.Contains(s, "169.254.169.254") || strings.Count(s, ":") > 1
		config := egress.Config{Allow: []string{s}, Resolve: book{"other.example": "169.254.169.254"}.resolve, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			if !byAddress {
				t.Errorf("%q opened %s", s, address)
			}
			return pretend(address), nil
		}}
		d, made := egress.New(config)
		if err := egress.CheckEntry(s); (err == nil) != (made == nil) {
			t.Fatalf("%q: %v, %v", s, err, made)
		}
		if made != nil {
			return
		}
		for _, port := range []string{"80", "443", "22"} {
			if c, err := d.DialContext(t.Context(), "tcp", "other.example:"+port); err == nil {
				_ = c.Close()
			}
		}
	})
}
