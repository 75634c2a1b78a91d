package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
	"localmcp/internal/fault"
)

func dialer(t testing.TB, c egress.Config) *egress.Dialer {
	t.Helper()
	d, err := egress.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Case 68: a name has a public address when it is judged and loopback when it is reached: the judged address is reached.
//
// TestRebinding: a name that has another address each time it is asked about is asked about
// once, and the connection goes to the address that was judged.
func TestRebinding(t *testing.T) {
	var asked atomic.Int32
	var dialed []string
	d := dialer(t, egress.Config{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if asked.Add(1)%2 == 1 {
				return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return pretend(address), nil
		},
	})
	c, err := d.DialContext(t.Context(), "tcp", "rebind.example:80")
	if err != nil || asked.Load() != 1 || c.RemoteAddr().String() != "93.184.216.34:80" {
		t.Fatalf("%v, asked %d times", err, asked.Load())
	}
	_ = c.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "rebind.example:80"); !errors.Is(err, contract.Forbidden) {
		t.Error(err)
	}
	if len(dialed) != 1 {
		t.Errorf("dialed %q", dialed)
	}
}

// TestWhereItCameOut: a connection that says it leads elsewhere is not used.
func TestWhereItCameOut(t *testing.T) {
	for _, end := range []net.Addr{
		&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}, &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}, &net.UnixAddr{Name: "x"}, nil,
	} {
		var closed atomic.Bool
		d := dialer(t, egress.Config{Dial: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			_ = there.Close()
			return closing{faraway{here, end}, &closed}, nil
		}})
		if c, err := d.DialContext(t.Context(), "tcp", "93.184.216.34:443"); err == nil || c != nil || !closed.Load() {
			t.Errorf("%v: %v, closed %v", end, err, closed.Load())
		}
	}
}

type closing struct {
	net.Conn
	closed *atomic.Bool
}

func (c closing) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

// TestNextAddress: when one address does not answer the next is tried, four in all.
func TestNextAddress(t *testing.T) {
	hosts := book{"two.example": "93.184.216.1 93.184.216.2", "six.example": "93.184.216.3 93.184.216.4 93.184.216.5 93.184.216.6 93.184.216.2", "both.example": "93.184.216.2 2606:4700::1"}
	var tried []string
	d := dialer(t, egress.Config{Resolve: hosts.resolve, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		tried = append(tried, address)
		if strings.HasPrefix(address, "93.184.216.2:") || strings.HasPrefix(address, "[") {
			return pretend(address), nil
		}
		return nil, syscall.ECONNREFUSED
	}})
	c, err := d.DialContext(t.Context(), "tcp", "two.example:443")
	if err != nil || c.RemoteAddr().String() != "93.184.216.2:443" {
		t.Fatal(err)
	}
	tried = nil
	if _, err := d.DialContext(t.Context(), "tcp", "six.example:443"); !errors.Is(err, contract.NotFound) || !errors.Is(err, syscall.ECONNREFUSED) || !fault.From(err).Retryable || len(tried) != 4 {
		t.Errorf("%v, tried %q", err, tried)
	}
	for network, want := range map[string]string{"tcp4": "93.184.216.2:443", "tcp6": "[2606:4700::1]:443", "tcp": "93.184.216.2:443"} {
		if c, err := d.DialContext(t.Context(), network, "both.example:443"); err != nil || c.RemoteAddr().String() != want {
			t.Errorf("%s: %v", network, err)
		}
	}
	for network, code := range map[string]error{"udp": contract.Forbidden, "unix": contract.Forbidden, "tcp6": contract.NotFound} {
		if _, err := d.DialContext(t.Context(), network, "two.example:443"); !errors.Is(err, code) {
			t.Errorf("%s: %v", network, err)
		}
	}
}

// TestTooLong: what hangs is ended, and what a caller gave up is not waited for.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		slow := dialer(t, egress.Config{
			Resolve: book{"slow.example": "93.184.216.1 93.184.216.2"}.resolve,
			Dial:    func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, hang(ctx) },
		})
		unknown := dialer(t, egress.Config{Resolve: func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, hang(ctx) }})
		for _, d := range []*egress.Dialer{slow, unknown} {
			begun := time.Now()
			if _, err := d.DialContext(t.Context(), "tcp", "slow.example:443"); !errors.Is(err, contract.Timeout) || !fault.From(err).Retryable {
				t.Errorf("%v", err)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			begun = time.Now()
			if _, err := d.DialContext(ctx, "tcp", "slow.example:443"); !errors.Is(err, context.Canceled) || time.Since(begun) > time.Second {
				t.Errorf("%v after %s", err, time.Since(begun))
			}
		}
	})
	offline := dialer(t, egress.Config{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	}})
	if _, err := offline.DialContext(t.Context(), "tcp", "slow.example:443"); !errors.Is(err, contract.NotFound) || !fault.From(err).Retryable {
		t.Error(err)
	}
}

// listen opens a port of the loopback interface.
func listen(t testing.TB) net.Listener {
	t.Helper()
	if testing.Short() {
		t.Skip("it sends over the loopback interface, whose packets the offline run counts")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestRealConnection: the system's own dialer, to a port of this machine that the owner named.
func TestRealConnection(t *testing.T) {
	l := listen(t)
	d := dialer(t, egress.Config{Allow: []string{l.Addr().String()}, Resolve: book{"self.example": "127.0.0.1"}.resolve})
	for _, to := range []string{l.Addr().String(), "self.example" + strings.TrimPrefix(l.Addr().String(), "127.0.0.1")} {
		c, err := d.DialContext(t.Context(), "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	none := dialer(t, egress.Config{})
	if _, err := none.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, contract.Forbidden) {
		t.Error(err)
	}
	_ = l.Close()
	if _, err := d.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, contract.NotFound) {
		t.Error(err)
	}
}
