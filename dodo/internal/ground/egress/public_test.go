package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
)

// TestPublic: what strangers ask for goes to public addresses that the owner allows, whatever
// else the owner opened.
func TestPublic(t *testing.T) {
	d := dialer(t, egress.Config{
		Allow: []string{"10.0.0.0/8", "127.0.0.1:8443", "localhost", "inside.example", "outside.example", "169.254.169.254", "[fd00::7]:443"},
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			addr := map[string]string{"localhost": "127.0.0.1", "inside.example": "192.168.1.1", "outside.example": "93.184.216.34", "other.example": "93.184.216.35"}[name]
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) { return pretend(address), nil },
	})
	for to, ours := range map[string]bool{
		"10.1.2.3:443": true, "127.0.0.1:8443": true, "localhost:443": true, "inside.example:443": true, "169.254.169.254:443": true, "[fd00::7]:443": true,
		"outside.example:443": true, "other.example:443": false,
	} {
		for public, want := range map[*egress.Dialer]bool{d: ours, d.Public(): ours && to == "outside.example:443"} {
			c, err := public.DialContext(t.Context(), "tcp", to)
			if (err == nil) != want || err != nil && !errors.Is(err, contract.Forbidden) {
				t.Errorf("%s: %v, to strangers: %v", to, err, public != d)
			}
			if c != nil {
				_ = c.Close()
			}
		}
	}
}
