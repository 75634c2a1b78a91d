package httpd_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"localmcp/dodo/internal/door/httpd"
)

// TestSilentConnections: connections that send nothing, half a head, or nothing more keep
// nobody out.
func TestSilentConnections(t *testing.T) {
	at := ""
	send := hostileDoor(t, httpd.Config{}, &at)
	for _, first := range []string{"", "GET /healthz HTTP/1.1\r\nHost: 127", "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"} {
		for range 1100 {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Skipf("so many connections cannot be opened: %v", err)
			}
			defer c.Close()
			fmt.Fprint(c, first)
		}
		began := time.Now()
		if code := send("GET /healthz HTTP/1.1", "Host: 127.0.0.1"); code != "200" || time.Since(began) > 5*time.Second {
			t.Errorf("%q: %s after %s", first, code, time.Since(began))
		}
	}
}
