package httpd_test

import (
	"strconv"
	"testing"
	"time"

	"localmcp/dodo/internal/door/httpd"
)

// few are rates that a test can reach.
func few(c *httpd.Config) {
	c.Rates = httpd.Rates{Principal: httpd.Rate{PerSecond: 1, Burst: 5}, Address: httpd.Rate{PerSecond: 1, Burst: 5}, Login: httpd.Rate{PerSecond: 1, Burst: 5}}
}

// flood makes requests until one is refused, and says how many were not.
func (d *door) flood(method, path, body string, header ...string) (answered int) {
	d.t.Helper()
	for ; answered < 50; answered++ {
		r := d.send(method, path, body, header...)
		if r.StatusCode != 429 {
			continue
		}
		if n, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || n < 1 || n > 60 || r.code() != "too_many_requests" {
			d.t.Errorf("%v %s", r.Header, r.body)
		}
		return answered
	}
	d.t.Errorf("%s %s: nothing stops it", method, path)
	return answered
}

// TestFloods: who comes too often waits, and nobody else does.
func TestFloods(t *testing.T) {
	d := start(t, few)
	if n := d.flood("POST", "/mcp", modernPing, modern("ann")...); n != 5 {
		t.Errorf("%d calls of one login", n)
	}
	if r := d.send("POST", "/mcp", modernPing, modern("bob")...); r.StatusCode != 200 {
		t.Errorf("another login: %d", r.StatusCode)
	}
	d.later(2 * time.Second)
	if r := d.send("POST", "/mcp", modernPing, modern("ann")...); r.StatusCode != 200 {
		t.Errorf("later: %d", r.StatusCode)
	}
	// Of requests without a token, those that a tunnel hands on are counted by themselves.
	if n := d.flood("POST", "/mcp", modernPing, append(modern("zoe"), "X-Forwarded-For", "203.0.113.9")...); n != 5 {
		t.Errorf("%d requests with a wrong token", n)
	}
	if r := d.send("GET", "/mcp", "", "X-Forwarded-For", "198.51.100.7"); r.StatusCode != 429 {
		t.Errorf("a name that the client made up is another one: %d", r.StatusCode)
	}
	if r := d.send("GET", "/mcp", ""); r.StatusCode != 401 {
		t.Errorf("this machine's: %d", r.StatusCode)
	}
	if r := d.send("POST", "/mcp", modernPing, append(modern("bob"), "X-Forwarded-For", "203.0.113.9")...); r.StatusCode != 200 {
		t.Errorf("a login from there: %d", r.StatusCode)
	}
}

// TestReserve: no flood on the way to a login, from elsewhere or of a client here that does not
// give up, keeps the owner's browser from approving.
func TestReserve(t *testing.T) {
	d := start(t, few)
	tunnel := []string{"Cf-Connecting-Ip", "203.0.113.9"}
	total := 0
	for _, path := range []string{"/auth", "/token", "/interaction/1"} { // one count for all
		total += d.flood("GET", path, "", tunnel...)
	}
	if total != 5 {
		t.Errorf("%d requests from elsewhere", total)
	}
	for _, path := range []string{"/auth", "/token", "/interaction/1", "/.well-known/oauth-protected-resource"} {
		if r := d.send("GET", path, ""); r.StatusCode != 200 {
			t.Errorf("%s on this machine: %d", path, r.StatusCode)
		}
	}
	d.flood("POST", "/token", "")
	for _, path := range []string{"/auth", "/interaction/1", "/.well-known/oauth-protected-resource", "/healthz"} {
		if r := d.send("GET", path, ""); r.StatusCode != 200 {
			t.Errorf("%s while a client of this machine asks for tokens: %d", path, r.StatusCode)
		}
	}
	for range 20 {
		if r := d.send("GET", "/healthz", "", tunnel...); r.StatusCode != 200 {
			t.Errorf("%d", r.StatusCode)
		}
	}
}

// TestDefaultRates: the documented figures hold.
func TestDefaultRates(t *testing.T) {
	d := start(t, nil)
	count := 0
	for ; count < 300; count++ {
		if d.send("GET", "/auth", "", "Via", "1.1 tunnel").StatusCode == 429 {
			break
		}
	}
	if count < 120 || count > 180 {
		t.Errorf("%d requests from elsewhere were answered at once", count)
	}
}
