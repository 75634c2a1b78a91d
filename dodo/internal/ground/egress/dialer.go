package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/internal/fault"
)

// Bounds of making one connection.
const (
	lookupTime  = 10 * time.Second // for the addresses of a name
	connectTime = 8 * time.Second  // for one address
	mostTries   = 4                // addresses that are tried
)

// Config is what a dialer is made of. The zero value reaches everything public by ports 80
// and 443.
type Config struct {
	// Allow and Deny are the owner's entries.
	Allow, Deny []string
	// Resolve gives the addresses of a name, and Dial connects to one address. They stand
	// for the system's own in tests; nil means those.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Dialer makes connections by the owner's rules. It may be used by many at once.
type Dialer struct {
	rules   rules
	resolve func(ctx context.Context, name string) ([]netip.Addr, error)
	connect func(ctx context.Context, network, address string) (net.Conn, error)
}

// New returns a dialer, or names the entry that cannot be used.
func New(c Config) (*Dialer, error) {
	r, err := newRules(c.Allow, c.Deny)
	if err != nil {
		return nil, err
	}
	d := &Dialer{rules: r, resolve: c.Resolve, connect: c.Dial}
	if d.resolve == nil {
		d.resolve = lookup
	}
	if d.connect == nil {
		d.connect = new(net.Dialer).DialContext
	}
	return d, nil
}

// Public returns a dialer that goes to public addresses alone, of those the owner allows. It is
// for connections that strangers ask for: what the owner opened of the machine and its network
// was not opened to them.
func (d *Dialer) Public() *Dialer {
	p := *d
	p.rules.public = true
	return &p
}

// lookup asks the system. The dot at the end keeps it from trying the name below the
// domains of the machine's own network.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if !strings.Contains(name, ".") {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", name) // of the machine's own list, which knows no dots
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name+".")
}

// Check judges host:port by what can be said without looking it up: nil does not promise
// that a connection will be made.
func (d *Dialer) Check(address string) error {
	t, err := readTarget(address)
	if err != nil {
		return err
	}
	_, err = d.before(t)
	return err
}

// before is what the rules say before the addresses of a name are known.
func (d *Dialer) before(t target) (grant, error) {
	g, err := d.rules.before(t)
	if err == nil && t.name == "" {
		err = d.rules.judge(t, g, t.addr)
	}
	return g, err
}

// readTarget reads host:port.
func readTarget(address string) (target, error) {
	t, why := parseTarget(address)
	if why != "" {
		return t, fault.New(contract.Forbidden, "no connection is made to %s: %s", quoted(address), why).
			WithHint("give a host by its name, or by its address in the usual form")
	}
	return t, nil
}

// DialContext connects to host:port. network is tcp, tcp4 or tcp6.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	t, err := readTarget(address)
	if err != nil {
		return nil, err
	}
	return d.dial(ctx, network, t)
}

func (d *Dialer) dial(ctx context.Context, network string, t target) (net.Conn, error) {
	g, err := d.before(t)
	if err != nil {
		return nil, err
	}
	addrs := []netip.Addr{t.addr}
	if t.name != "" {
		if addrs, err = d.lookup(ctx, t); err != nil {
			return nil, err
		}
		for _, a := range addrs {
			if err := d.rules.judge(t, g, a); err != nil {
				return nil, err
			}
		}
	}
	if addrs, err = ofNetwork(addrs, network); err != nil {
		return nil, err
	}
	return d.first(ctx, t, addrs)
}

// lookup finds the addresses of a name, once. Each is in its plain form.
func (d *Dialer) lookup(ctx context.Context, t target) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := d.resolve(ctx, t.name)
	var unknown *net.DNSError
	switch {
	case err == nil && len(addrs) == 0, errors.As(err, &unknown) && unknown.IsNotFound:
		return nil, fault.Wrap(contract.NotFound, err, "there is no host called %s", t.host()).WithHint("look at the spelling of the name")
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil && timedOut(err):
		return nil, fault.Wrap(contract.Timeout, err, "looking up %s took too long", t.host()).WithHint("try again later").Retry()
	case err != nil:
		return nil, fault.Wrap(contract.NotFound, err, "%s cannot be looked up at this time", t.host()).
			WithHint("the machine may be offline; try again later").Retry()
	}
	plain := make([]netip.Addr, len(addrs))
	for i, a := range addrs {
		plain[i] = a.Unmap()
	}
	return plain, nil
}

// ofNetwork keeps the addresses of a network.
func ofNetwork(addrs []netip.Addr, network string) ([]netip.Addr, error) {
	switch network {
	case "tcp":
		return addrs, nil
	case "tcp4", "tcp6":
		return slices.DeleteFunc(slices.Clone(addrs), func(a netip.Addr) bool { return a.Is4() != (network == "tcp4") }), nil
	}
	return nil, fault.New(contract.Forbidden, "only TCP connections are made").WithHint("use TCP")
}

// first connects to the first of the addresses that answers.
func (d *Dialer) first(ctx context.Context, t target, addrs []netip.Addr) (net.Conn, error) {
	err := errors.New("it has no address of that network")
	for _, a := range addrs[:min(len(addrs), mostTries)] {
		var c net.Conn
		if c, err = d.one(ctx, netip.AddrPortFrom(a, t.port)); err == nil || ctx.Err() != nil {
			return c, err
		}
	}
	if timedOut(err) {
		return nil, fault.Wrap(contract.Timeout, err, "%s did not answer in time", t).WithHint("try again later").Retry()
	}
	return nil, fault.Wrap(contract.NotFound, err, "%s cannot be reached", t).WithHint("look whether the host is up and the port is right, then try again").Retry()
}

// one connects to an address that was judged, and looks where it came out.
func (d *Dialer) one(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	within, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	c, err := d.connect(within, "tcp", to.String())
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	end, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok || netip.AddrPortFrom(end.AddrPort().Addr().Unmap(), end.AddrPort().Port()) != to {
		_ = c.Close()
		return nil, fmt.Errorf("the connection to %s leads to %s", to, c.RemoteAddr())
	}
	return c, nil
}

// timedOut reports whether an error says that something took too long.
func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}
