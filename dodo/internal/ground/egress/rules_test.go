package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
	"localmcp/internal/fault"
)

func TestEntries(t *testing.T) {
	for _, s := range []string{
		"example.com", "example.com:8443", "*.example.com", "*.example.com:22", "*", "*:8080", "localhost", "localhost:3000", "EXAMPLE.com.", "x_y.example",
		"192.0.2.7", "192.0.2.7:80", "10.0.0.0/8", "10.0.0.0/8:5432", "fd00::7", "[fd00::7]", "[fd00::7]:443", "fd00::/8", "[fd00::/8]:443", "xn--mnchen-3ya.de", "*.internal",
	} {
		if err := egress.CheckEntry(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	for s, want := range map[string]string{
		"": "empty", "https://example.com": "URL", "http://[::1]:80/": "URL", " example.com": "well-formed", "exa mple": "well-formed", "example.com/": "range",
		"example.com:": "port is empty", "example.com:0": "port", "example.com:65536": "port", "example.com:080": "port", "example.com:http": "port",
		"*.": "no host", "**": "well-formed", "*.*.com": "well-formed", "a.*.com": "well-formed", "*example.com": "well-formed", "-a.com": "well-formed", "a..com": "well-formed",
		"user@example.com": "well-formed", "münchen.de": "xn--", "example。com": "xn--", "１２７.0.0.1": "xn--",
		"2130706433": "number", "0x7f000001": "number", "0177.0.0.1": "number", "127.1": "number", "127.0.0.0x1": "number", "1.2.3.4.5": "number", "a.0x": "number",
		"*.127.0.0.1": "below an address", "10.0.0.1/8": "beyond the mask; the range is 10.0.0.0/8", "0.0.0.0/0": "every address", "::/0": "every address", "10.0.0.0/33": "range",
		"::ffff:10.0.0.0/104": "usual form", "[example.com]:443": "brackets", "[fd00::7": "brackets", "[fd00::7]443": "follow", "[fd00::7]:": "follow", "fe80::1%eth0": "zone", "[fe80::1%25eth0]:80": "zone",
		"a\nb": `"a\nb"`, "a\u202eb": `\u202e`, strings.Repeat("a.", 200) + "com": "longer", strings.Repeat("a", 64) + ".com": "well-formed",
	} {
		err := egress.CheckEntry(s)
		if !errors.Is(err, contract.InvalidInput) || !strings.Contains(err.Error(), want) || fault.From(err).Hint == "" {
			t.Errorf("%q: %v, want %q", s, err, want)
		}
	}
	if _, err := egress.New(egress.Config{Deny: []string{"a:b:c"}}); !errors.Is(err, contract.InvalidInput) {
		t.Error(err)
	}
}

// book is a resolver that knows some names.
type book map[string]string

func (b book) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	list, ok := b[name]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var addrs []netip.Addr
	for _, s := range strings.Fields(list) {
		addrs = append(addrs, netip.MustParseAddr(s))
	}
	return addrs, nil
}

// faraway is a connection that says it leads to an address.
type faraway struct {
	net.Conn
	end net.Addr
}

func (f faraway) RemoteAddr() net.Addr { return f.end }

func pretend(address string) net.Conn {
	here, there := net.Pipe()
	_ = there.Close()
	return faraway{here, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))}
}

// TestRules: where connections go, by the owner's entries, the name and its addresses.
func TestRules(t *testing.T) {
	hosts := book{
		"example.com": "93.184.216.34 2606:2800:220:1::1", "a.example.com": "93.184.216.34", "b.a.example.com": "93.184.216.34",
		"lan.example": "10.1.2.3", "half.example": "93.184.216.34 10.1.2.3", "self.example": "127.0.0.1", "meta.example": "169.254.169.254",
		"mapped.example": "::ffff:10.1.2.3", "mappedpublic.example": "::ffff:93.184.216.34", "nat.example": "64:ff9b::93.184.216.34", "zone.example": "fe80::1%eth0",
		"localhost": "127.0.0.1 ::1", "x.localhost": "127.0.0.1", "db.internal": "10.9.9.9", "printer.local": "192.168.1.9", "nas": "192.168.1.5", "empty.example": "",
		"public.internal": "93.184.216.34", "four.example": "93.184.216.34", "many.example": "93.184.216.35 93.184.216.36", "zero.example": "0.0.0.0",
	}
	list := strings.Fields
	for _, c := range []struct{ allow, deny, to, want string }{
		// Nobody said anything.
		{"", "", "example.com:443", "93.184.216.34:443"},
		{"", "", "EXAMPLE.com.:443", "93.184.216.34:443"},
		{"", "", "example.com:80", "93.184.216.34:80"},
		{"", "", "example.com:22", "FORBIDDEN"},
		{"", "", "example.com:8080", "FORBIDDEN"},
		{"", "", "93.184.216.34:443", "93.184.216.34:443"},
		{"", "", "[::ffff:93.184.216.34]:443", "93.184.216.34:443"},
		{"", "", "mappedpublic.example:443", "93.184.216.34:443"},
		{"", "", "none.example:443", "NOT_FOUND"},
		{"", "", "empty.example:443", "NOT_FOUND"},
		{"", "", "lan.example:443", "FORBIDDEN"},
		{"", "", "half.example:443", "FORBIDDEN"},
		{"", "", "self.example:443", "FORBIDDEN"},
		{"", "", "zero.example:443", "FORBIDDEN"},
		{"", "", "mapped.example:443", "FORBIDDEN"},
		{"", "", "nat.example:443", "FORBIDDEN"},
		{"", "", "zone.example:443", "FORBIDDEN"},
		{"", "", "localhost:443", "FORBIDDEN"},
		{"", "", "public.internal:443", "FORBIDDEN"},
		{"", "", "nas:443", "FORBIDDEN"},
		{"", "", "127.0.0.1:443", "FORBIDDEN"},
		{"", "", "[::1]:443", "FORBIDDEN"},
		{"", "", "[::ffff:127.0.0.1]:443", "FORBIDDEN"},
		{"", "", "[::127.0.0.1]:443", "FORBIDDEN"},
		{"", "", "169.254.169.254:80", "FORBIDDEN"},
		{"", "", "[fe80::1%eth0]:443", "FORBIDDEN"},
		// Forms of addresses that only some programs understand.
		{"", "", "2130706433:443", "FORBIDDEN"},
		{"", "", "0x7f000001:443", "FORBIDDEN"},
		{"", "", "0x7f.0x1:443", "FORBIDDEN"},
		{"", "", "0177.0.0.1:443", "FORBIDDEN"},
		{"", "", "127.1:443", "FORBIDDEN"},
		{"", "", "127.0.0.1.:443", "FORBIDDEN"},
		{"", "", "127。0。0。1:443", "FORBIDDEN"},
		{"", "", "user@example.com:443", "FORBIDDEN"},
		{"", "", "example.com%00.lan.example:443", "FORBIDDEN"},
		{"", "", "exa mple.com:443", "FORBIDDEN"},
		{"", "", "example.com", "FORBIDDEN"},
		{"", "", "example.com:", "FORBIDDEN"},
		{"", "", "example.com:https", "FORBIDDEN"},
		{"", "", "example.com:0443", "FORBIDDEN"},
		{"", "", ":443", "FORBIDDEN"},
		// Only what is named.
		{"example.com", "", "example.com:443", "93.184.216.34:443"},
		{"example.com", "", "a.example.com:443", "FORBIDDEN"},
		{"example.com", "", "four.example:443", "FORBIDDEN"},
		{"example.com", "", "none.example:443", "FORBIDDEN"}, // and nobody is asked about it
		{"example.com", "", "93.184.216.34:443", "FORBIDDEN"},
		{"example.com", "", "example.com:22", "FORBIDDEN"},
		{"example.com:22", "", "example.com:22", "93.184.216.34:22"},
		{"example.com:22", "", "example.com:443", "FORBIDDEN"},
		{"*.example.com", "", "a.example.com:443", "93.184.216.34:443"},
		{"*.example.com", "", "b.a.example.com:80", "93.184.216.34:80"},
		{"*.example.com", "", "example.com:443", "FORBIDDEN"},
		{"*.ple.com", "", "example.com:443", "FORBIDDEN"},
		{"93.184.216.34", "", "93.184.216.34:443", "93.184.216.34:443"},
		{"93.184.216.34", "", "a.example.com:443", "93.184.216.34:443"},
		{"93.184.216.34", "", "example.com:443", "FORBIDDEN"}, // its other address is not named
		{"93.184.216.34", "", "many.example:443", "FORBIDDEN"},
		{"93.184.216.0/24", "", "many.example:443", "93.184.216.35:443"},
		{"93.184.216.0/24:8443", "", "many.example:8443", "93.184.216.35:8443"},
		{"93.184.216.0/24:8443", "", "many.example:443", "FORBIDDEN"},
		{"* 10.1.2.3:5432", "", "example.com:443", "93.184.216.34:443"},
		{"* 10.1.2.3:5432", "", "lan.example:5432", "10.1.2.3:5432"},
		{"* 10.1.2.3:5432", "", "lan.example:443", "FORBIDDEN"},
		{"* 10.1.2.3:5432", "", "example.com:5432", "FORBIDDEN"},
		{"*:8080", "", "example.com:8080", "93.184.216.34:8080"},
		{"*:8080", "", "lan.example:8080", "FORBIDDEN"},
		{"*:8080", "", "localhost:8080", "FORBIDDEN"},
		// What opens addresses that are not public.
		{"lan.example", "", "lan.example:443", "10.1.2.3:443"},
		{"half.example", "", "half.example:443", "93.184.216.34:443"},
		{"mapped.example", "", "mapped.example:443", "10.1.2.3:443"},
		{"*.example", "", "lan.example:443", "FORBIDDEN"},
		{"self.example", "", "self.example:443", "FORBIDDEN"},
		{"meta.example", "", "meta.example:443", "FORBIDDEN"},
		{"zero.example", "", "zero.example:443", "FORBIDDEN"},
		{"127.0.0.1", "", "self.example:443", "127.0.0.1:443"},
		{"127.0.0.1:3000", "", "127.0.0.1:3000", "127.0.0.1:3000"},
		{"127.0.0.1:3000", "", "127.0.0.1:3001", "FORBIDDEN"},
		{"127.0.0.1:3000", "", "[::ffff:127.0.0.1]:3000", "127.0.0.1:3000"},
		{"127.0.0.1:3000", "", "[64:ff9b::127.0.0.1]:3000", "FORBIDDEN"},
		{"127.0.0.1:3000", "", "localhost:3000", "FORBIDDEN"}, // the name is not named
		{"localhost:3000", "", "localhost:3000", "127.0.0.1:3000"},
		{"localhost:3000", "", "127.0.0.1:3000", "FORBIDDEN"},
		{"x.localhost", "", "x.localhost:80", "127.0.0.1:80"},
		{"*.localhost", "", "x.localhost:80", "FORBIDDEN"},
		{"*.localhost 127.0.0.1", "", "x.localhost:80", "127.0.0.1:80"},
		{"db.internal:5432", "", "db.internal:5432", "10.9.9.9:5432"},
		{"*.internal", "", "public.internal:443", "93.184.216.34:443"},
		{"*.internal", "", "db.internal:443", "FORBIDDEN"},
		{"*.internal 10.0.0.0/8", "", "db.internal:443", "10.9.9.9:443"},
		{"10.0.0.0/8", "", "db.internal:443", "FORBIDDEN"},
		{"printer.local", "", "printer.local:80", "192.168.1.9:80"},
		{"nas:5000", "", "nas:5000", "192.168.1.5:5000"},
		{"169.254.169.254:80", "", "169.254.169.254:80", "169.254.169.254:80"},
		{"169.254.0.0/16:80", "", "meta.example:80", "169.254.169.254:80"},
		// What nothing opens.
		{"0.0.0.0", "", "0.0.0.0:80", "FORBIDDEN"},
		{"64:ff9b::/96 64:ff9b::7f00:1", "", "[64:ff9b::7f00:1]:80", "FORBIDDEN"},
		{"2002:7f00:1::/48", "", "[2002:7f00:1::1]:80", "FORBIDDEN"},
		{"224.0.0.1", "", "224.0.0.1:80", "FORBIDDEN"},
		{"255.255.255.255", "", "255.255.255.255:80", "FORBIDDEN"},
		{"::", "", "[::]:80", "FORBIDDEN"},
		// A deny entry wins.
		{"", "example.com", "example.com:443", "FORBIDDEN"},
		{"", "example.com", "a.example.com:443", "93.184.216.34:443"},
		{"", "*.example.com", "a.example.com:443", "FORBIDDEN"},
		{"", "*.example.com", "example.com:443", "93.184.216.34:443"},
		{"", "example.com:80", "example.com:443", "93.184.216.34:443"},
		{"", "example.com:80", "example.com:80", "FORBIDDEN"},
		{"", "93.184.216.0/24", "four.example:443", "FORBIDDEN"},
		{"", "2606:2800::/32", "example.com:443", "FORBIDDEN"},
		{"", "93.184.216.34", "[::ffff:93.184.216.34]:443", "FORBIDDEN"},
		{"", "*:80", "example.com:80", "FORBIDDEN"},
		{"", "*:80", "example.com:443", "93.184.216.34:443"},
		{"", "*", "93.184.216.34:443", "FORBIDDEN"},
		{"10.0.0.0/8", "10.1.0.0/16", "lan.example:443", "FORBIDDEN"},
		{"lan.example", "lan.example", "lan.example:443", "FORBIDDEN"},
		{"example.com:22", "example.com", "example.com:22", "FORBIDDEN"},
	} {
		d, err := egress.New(egress.Config{
			Allow: list(c.allow), Deny: list(c.deny), Resolve: hosts.resolve,
			Dial: func(_ context.Context, network, address string) (net.Conn, error) {
				if network != "tcp" {
					t.Errorf("%+v: dialed %s", c, network)
				}
				return pretend(address), nil
			},
		})
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		got := ""
		conn, err := d.DialContext(t.Context(), "tcp", c.to)
		if err != nil {
			f := fault.From(err)
			if got = string(f.Code); f.Hint == "" || strings.ContainsFunc(f.Msg+f.Hint, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) {
				t.Errorf("%+v: %q %q", c, f.Msg, f.Hint)
			}
		} else {
			got = conn.RemoteAddr().String()
			_ = conn.Close()
		}
		if got != c.want {
			t.Errorf("allow %q deny %q to %q: %s (%v), want %s", c.allow, c.deny, c.to, got, err, c.want)
		}
		if check := d.Check(c.to); check != nil && err == nil {
			t.Errorf("%+v: Check says %v", c, check)
		}
	}
}

// TestHintOpens: what a refusal tells the owner to add is an entry that opens it.
func TestHintOpens(t *testing.T) {
	hosts := book{"lan.example": "10.1.2.3", "self.example": "127.0.0.1", "localhost": "127.0.0.1", "example.com": "93.184.216.34", "six.example": "fe80::1"}
	for _, to := range []string{"lan.example:443", "self.example:8080", "localhost:3000", "example.com:22", "[::1]:80", "six.example:443"} {
		c := egress.Config{Resolve: hosts.resolve, Dial: func(_ context.Context, _, address string) (net.Conn, error) { return pretend(address), nil }}
		for range 3 { // the name first, then perhaps the address it has
			d, err := egress.New(c)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := d.DialContext(t.Context(), "tcp", to)
			if err == nil {
				_ = conn.Close()
				c.Allow = nil
				break
			}
			hint := fault.From(err).Hint
			var add string
			if _, rest, ok := strings.Cut(hint, "'*' '"); ok {
				add, _, _ = strings.Cut(rest, "'")
				c.Allow = append(c.Allow, "*")
			} else if _, rest, ok := strings.Cut(hint, "can add "); ok {
				add, _, _ = strings.Cut(rest, " ")
			}
			c.Allow = append(c.Allow, add)
		}
		if c.Allow != nil {
			t.Errorf("%s: still refused with %q", to, c.Allow)
		}
	}
}
