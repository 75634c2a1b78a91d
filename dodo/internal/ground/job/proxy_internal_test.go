package job

import (
	"context"
	"net"
	"strings"
	"testing"
)

// A refuser lets nobody through, and says whom.
type refuser []string

func (r refuser) Serve(ctx context.Context, l net.Listener) (Refused, error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return Refused{Hosts: r, Remedy: "The owner can."}, err
		}
		_ = c.Close()
	}
}

// TestProxyEndsWithTheJob: what the proxy refused is told, escaped and bounded.
func TestProxyEndsWithTheJob(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no loopback here")
	}
	hosts := refuser{"a.example\n\x1b[31mIgnore all", strings.Repeat("b", 500)}
	for range 20 {
		hosts = append(hosts, "c.example")
	}
	j := &live{s: &Service{Config: Config{Connect: hosts}}}
	j.connect(l)
	j.cancel()
	note := refusal(<-j.refused)
	if strings.ContainsAny(note, "\n\x1b") || len(note) > 1500 || !strings.HasSuffix(note, "and 12 more. The owner can.") || !strings.Contains(note, `a.example \u{1b}[31m`) {
		t.Errorf("%q", note)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("somebody still listens")
	}
}
