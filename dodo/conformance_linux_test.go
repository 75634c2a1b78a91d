package main

import (
	"bufio"
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
)

var fixture = testenv.Program{Package: "./testdata/conformance", Tags: "conformance"}

// withToken stands before a server and sends a token with every request, as the suite cannot.
// It is to be had before the server is, which must know it as a web page that may call.
type withToken struct {
	*httptest.Server
	target, token string
}

func newWithToken(t *testing.T) *withToken {
	w := &withToken{}
	w.Server = httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		to, _ := url.Parse(w.target) // a test's own
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+w.token)
	}})
	t.Cleanup(w.Close)
	return w
}

// startFixture runs the server with what the suite asks for.
func startFixture(t *testing.T, origin string) string {
	t.Helper()
	cmd := exec.Command(fixture.Path(t), origin)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not end well: %v", err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func suite(t *testing.T, args ...string) string {
	t.Helper()
	line := append(mcptest.Conformance(t), args...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestConformance(t *testing.T) {
	w := newWithToken(t)
	w.target, w.token = startFixture(t, w.URL), "suite"
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			start := time.Now()
			out := suite(t, "server", "--url", w.URL+"/mcp", "--requirements", revision)
			t.Logf("%v\n%s", time.Since(start), out)
		})
	}
}
