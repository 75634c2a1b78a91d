package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/ground/egress"
)

// served is a proxy that serves, and a host it may reach.
type served struct {
	*egress.Proxy
	address string // of the proxy
	host    string // name:port of the host
	end     context.CancelFunc
	ended   chan error
}

// serve starts a proxy that may reach the listener of a host under the name site.example.
func serve(t testing.TB, host net.Listener, more ...string) *served {
	return serveFor(t, time.Minute, host, more...)
}

// serveFor is serve with a time in which something has to move.
func serveFor(t testing.TB, moving time.Duration, host net.Listener, more ...string) *served {
	t.Helper()
	l := listen(t)
	_, port, err := net.SplitHostPort(host.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d := dialer(t, egress.Config{
		Allow:   append([]string{host.Addr().String()}, more...),
		Resolve: book{"site.example": "127.0.0.1", "lan.example": "10.1.2.3", "rebind.example": "127.0.0.1"}.resolve,
	})
	ctx, end := context.WithCancel(t.Context())
	s := &served{Proxy: egress.NewProxy(d), address: l.Addr().String(), host: "site.example:" + port, end: end, ended: make(chan error, 1)}
	s.Hurry(moving, 100*time.Millisecond)
	go func() { s.ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		end()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		s.ended <- nil
	})
	return s
}

// site is a host that answers with what it got.
func site(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener = listen(t)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// raw sends bytes to the proxy and reads until it ends the connection.
func (s *served) raw(t testing.TB, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(text, "CONNECT ") {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

// client uses the proxy as programs do.
func (s *served) client() *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: s.address})}}
}

func TestProxyPassesRequests(t *testing.T) {
	var got http.Header
	var line string
	h := site(t, func(w http.ResponseWriter, r *http.Request) {
		got, line = r.Header.Clone(), r.Method+" "+r.RequestURI+" "+r.Host
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("X-End", "1")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "got %s", body)
	})
	s := serve(t, h.Listener)
	r, err := http.NewRequest("POST", "http://"+s.host+"/a%2fb?x=1;y&z", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{
		"Connection": {"X-Mine, Keep-Alive"}, "X-Mine": {"1"}, "Keep-Alive": {"5"}, "Proxy-Authorization": {"Basic eDp5"}, "Proxy-Connection": {"keep-alive"},
		"Te": {"trailers"}, "Upgrade": {"h2c"}, "Http2-Settings": {"AAA"}, "Cookie": {"a=b"}, "X-Forwarded-For": {"1.2.3.4"}, "User-Agent": {""},
	}
	answer, err := s.client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusTeapot || string(body) != "got body" || answer.Header.Get("X-End") != "1" ||
		answer.Header.Get("X-Hop") != "" || answer.Header.Get("Proxy-Authenticate") != "" {
		t.Errorf("%d %s %v", answer.StatusCode, body, answer.Header)
	}
	if line != "POST /a%2fb?x=1;y&z "+s.host {
		t.Error(line)
	}
	if d := cmp.Diff(http.Header{"Accept-Encoding": {"gzip"}, "Content-Length": {"4"}, "Cookie": {"a=b"}}, got); d != "" {
		t.Error(d)
	}
	if n, _ := s.Refused(); n != 0 {
		t.Error(n)
	}
}

// TestProxyStreams: what a host sends is there before it has sent all.
func TestProxyStreams(t *testing.T) {
	goOn := make(chan struct{})
	h := site(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		<-goOn
		_, _ = io.WriteString(w, "two\n")
	})
	s := serve(t, h.Listener)
	r, err := s.client().Get("http://" + s.host + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewReader(r.Body)
	if line, err := lines.ReadString('\n'); line != "one\n" {
		t.Fatal(line, err)
	}
	close(goOn)
	if line, err := lines.ReadString('\n'); line != "two\n" {
		t.Fatal(line, err)
	}
}

// TestProxyTunnels: TLS goes through whole, the end of one way leaves the other, and what a
// client sends with the request itself arrives.
func TestProxyTunnels(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	_ = secure.Listener.Close()
	secure.Listener = listen(t)
	secure.StartTLS()
	defer secure.Close()
	s := serve(t, secure.Listener)
	c := s.client()
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	r, err := c.Get("https://" + s.host + "/")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	_ = r.Body.Close()
	if string(b) != "HTTP/1.1" {
		t.Errorf("%s", b)
	}

	echo := listen(t)
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			all, _ := io.ReadAll(c) // only when the client's way has ended
			fmt.Fprintf(c, "heard %s", all)
			_ = c.Close()
		}
	}()
	s = serve(t, echo)
	if got := s.raw(t, "CONNECT "+s.host+" HTTP/1.1\r\nHost: other.example:22\r\n\r\nhello"); got != "HTTP/1.1 200 Connection established\r\n\r\nheard hello" {
		t.Errorf("%q", got)
	}
}

// Case 68: a command asks the proxy for other hosts, addresses, port 22: refused, with what the owner can do.
//
// TestProxyRefuses: requests that do not get through, and never reach the host.
func TestProxyRefuses(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	h := site(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, r.Method+" "+r.Host+r.RequestURI)
	})
	s := serve(t, h.Listener, "named.example", "rebind.example")
	_, port, _ := net.SplitHostPort(s.host)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: " + s.host:                                                         "400",
		"GET //" + s.host + "/ HTTP/1.1\r\nHost: x":                                                 "400",
		"OPTIONS * HTTP/1.1\r\nHost: " + s.host:                                                     "400",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n":                                                              "400",
		"GET https://" + s.host + "/ HTTP/1.1\r\nHost: x":                                           "400",
		"GET ftp://" + s.host + "/ HTTP/1.1\r\nHost: x":                                             "400",
		"GET file:///etc/passwd HTTP/1.1\r\nHost: x":                                                "400",
		"GET http:/// HTTP/1.1\r\nHost: " + s.host:                                                  "400",
		"GET http:" + s.host + "/ HTTP/1.1\r\nHost: x":                                              "400",
		"GET http://u:p@" + s.host + "/ HTTP/1.1\r\nHost: x":                                        "400",
		"GET http://127.0.0.1\\@" + s.host + "/ HTTP/1.1\r\nHost: x":                                "400",
		"GET http://169.254.169.254/latest/ HTTP/1.1\r\nHost: " + s.host:                            "403",
		"GET http://2130706433:" + port + "/ HTTP/1.1\r\nHost: " + s.host:                           "403",
		"GET http://0x7f.1:" + port + "/ HTTP/1.1\r\nHost: " + s.host:                               "403",
		"GET http://[::ffff:127.0.0.2]:" + port + "/ HTTP/1.1\r\nHost: x":                           "403",
		"GET http://localhost:" + port + "/ HTTP/1.1\r\nHost: x":                                    "403",
		"GET http://other.example/ HTTP/1.1\r\nHost: " + s.host:                                     "403",
		"GET http://lan.example:" + port + "/ HTTP/1.1\r\nHost: x":                                  "403",
		"GET http://93.184.216.34/ HTTP/1.1\r\nHost: x":                                             "403",
		"GET http://rebind.example/ HTTP/1.1\r\nHost: x":                                            "403", // allowed, but it leads to this machine
		"GET http://named.example/ HTTP/1.1\r\nHost: x":                                             "502",
		"CONNECT " + s.host + ":22 HTTP/1.1\r\nHost: x":                                             "40",
		"CONNECT site.example:22 HTTP/1.1\r\nHost: " + s.host:                                       "403",
		"CONNECT site.example HTTP/1.1\r\nHost: " + s.host:                                          "403",
		"CONNECT 93.184.216.34:443 HTTP/1.1\r\nHost: " + s.host:                                     "403",
		"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: " + s.host:                                    "403",
		"CONNECT [::1]:" + port + " HTTP/1.1\r\nHost: " + s.host:                                    "403",
		"CONNECT 2130706433:" + port + " HTTP/1.1\r\nHost: x":                                       "403",
		"CONNECT a@" + s.host + " HTTP/1.1\r\nHost: x":                                              "403",
		"CONNECT " + s.host + "/path HTTP/1.1\r\nHost: x":                                           "403",
		"CONNECT http://" + s.host + "/ HTTP/1.1\r\nHost: x":                                        "403",
		"CONNECT /x HTTP/1.1\r\nHost: " + s.host:                                                    "403",
		"CONNECT " + s.host + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello":              "400",
		"CONNECT " + s.host + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n": "400",
		"GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nHost: y":                                 "400",
		"GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nA : b":                                   "400",
		"GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\n A: b":                                   "400",
		"GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nA: b\rc":                                 "400",
		"POST http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2": "400",
		"POST http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip":                "501",
		"POST http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity":   "501",
		"GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 64<<10):       "431",
		"GET http://" + s.host + "/a b HTTP/1.1\r\nHost: x":                                         "400",
		"GET http://" + s.host + "/ HTTP/9.9\r\nHost: x":                                            "50",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03":                                              "400",
		"SOCKS": "",
	} {
		got := s.raw(t, request+"\r\n\r\n")
		_, status, _ := strings.Cut(got, " ")
		if !strings.HasPrefix(status, want) || strings.Count(got, "HTTP/1.") > 1 {
			t.Errorf("%.120q:\n%.300s\nwant %s", request, got, want)
		}
		if want == "403" && (!strings.Contains(got, "Connection: close\r\n") || !strings.Contains(got, "\r\n\r\ndodo: ") || strings.Contains(request, "://") && !strings.Contains(got, "egressAllow") && !strings.Contains(got, "usual form")) {
			t.Errorf("%.120q:\n%s", request, got)
		}
	}
	if len(reached) > 0 {
		t.Errorf("reached %q", reached)
	}
	n, targets := s.Refused()
	if n < 15 || len(targets) < 10 || !slices.Contains(targets, "169.254.169.254:80") || !slices.Contains(targets, "other.example") {
		t.Errorf("%d %q", n, targets)
	}
}

// Case 68: a request hides another one, or names two hosts: the target's address alone counts, nothing passes unseen.
//
// TestProxyNoSmuggling: what is ambiguous to others is one request to the host, and a refused
// request takes what was sent behind it along.
func TestProxyNoSmuggling(t *testing.T) {
	var mu sync.Mutex
	var reached []string
	h := site(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		reached = append(reached, fmt.Sprintf("%s %s %s %q", r.Method, r.Host, r.RequestURI, b))
	})
	s := serve(t, h.Listener)
	inner := "GET /smuggled HTTP/1.1\r\nHost: " + s.host + "\r\n\r\n"
	for _, c := range []struct {
		request string
		want    []string
	}{
		{"POST http://" + s.host + "/a HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner, []string{"POST " + s.host + ` /a ""`}},
		{"POST http://" + s.host + "/b HTTP/1.1\r\nContent-Length: " + fmt.Sprint(len(inner)) + "\r\nHost: x\r\n\r\n" + inner, []string{fmt.Sprintf("POST %s /b %q", s.host, inner)}},
		{"GET http://" + s.host + "/c HTTP/1.1\r\nHost: x\r\nConnection: Content-Length, Host\r\nContent-Length: 3\r\n\r\nabc", []string{"GET " + s.host + ` /c "abc"`}},
		{"GET http://refused.example/ HTTP/1.1\r\nHost: x\r\n\r\nGET http://" + s.host + "/d HTTP/1.1\r\nHost: x\r\n\r\n", nil},
		{"CONNECT refused.example:443 HTTP/1.1\r\nHost: x\r\n\r\nGET http://" + s.host + "/e HTTP/1.1\r\nHost: x\r\n\r\n", nil},
	} {
		reached = nil
		got := s.raw(t, c.request)
		if d := cmp.Diff(c.want, reached); d != "" {
			t.Errorf("%q:\n%s\n%s", c.request, got, d)
		}
	}
}

// TestProxyDoubtfulHosts: a host that switches protocols, sends a head without end, or
// nothing that is HTTP.
func TestProxyDoubtfulHosts(t *testing.T) {
	for name, answer := range map[string]string{
		"switch": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: evil\r\n\r\nraw bytes",
		"head":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
		"none":   "220 mail.example ESMTP\r\n",
		"ends":   "",
	} {
		l := listen(t)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = bufio.NewReader(c).ReadString('\n')
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		}()
		s := serve(t, l)
		if got := s.raw(t, "GET http://"+s.host+"/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: evil\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 502") {
			t.Errorf("%s: %.200q", name, got)
		}
	}
}

// TestProxyManyConnections: more clients than there may be connections are all served, never
// more at once than that.
func TestProxyManyConnections(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	h := site(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprint(w, "ok")
	})
	s := serve(t, h.Listener)
	var all sync.WaitGroup
	for range 2*egress.MostConnections + 50 {
		all.Go(func() {
			if got := s.raw(t, "GET http://"+s.host+"/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasSuffix(got, "ok") {
				t.Errorf("%.200q", got)
			}
		})
	}
	all.Wait()
	if most > egress.MostConnections {
		t.Errorf("%d at once", most)
	}
}

// TestProxySlowClients: a client that does not finish a head, goes quiet in a body or a
// tunnel, or takes no answer, is ended.
func TestProxySlowClients(t *testing.T) {
	h := site(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			for range 1 << 10 {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	})
	quiet := listen(t)
	s, q := serveFor(t, 100*time.Millisecond, h.Listener), serveFor(t, 100*time.Millisecond, quiet)
	for p, text := range map[*served][]string{
		s: {"GET http://" + s.host + "/ HTTP/1.1\r\nHost", "POST http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", "GET http://" + s.host + "/ HTTP/1.1\r\nHost: x\r\n\r\n"},
		q: {"CONNECT " + q.host + " HTTP/1.1\r\nHost: x\r\n\r\nabc", "GET http://" + q.host + "/ HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		for _, request := range text {
			c, err := net.Dial("tcp", p.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			time.Sleep(400 * time.Millisecond) // takes nothing meanwhile
			_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if n, err := io.Copy(io.Discard, c); err != nil && err.(net.Error).Timeout() || n > 32<<20 {
				t.Errorf("%q: %d bytes, %v", request, n, err)
			}
		}
	}
}

// TestProxyEnds: with its context or its listener everything ends: tunnels, answers on their
// way, clients that wait, and no goroutine stays.
func TestProxyEnds(t *testing.T) {
	hold := make(chan struct{})
	h := site(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "begun\n")
		_ = http.NewResponseController(w).Flush()
		<-hold
	})
	defer close(hold)
	for _, how := range []string{"context", "listener"} {
		before := runtime.NumGoroutine()
		l := listen(t)
		_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
		d := dialer(t, egress.Config{Allow: []string{h.Listener.Addr().String()}, Resolve: book{"site.example": "127.0.0.1"}.resolve})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- egress.NewProxy(d).Serve(ctx, l) }()
		var clients []net.Conn
		for _, request := range []string{"", "GET http", "GET http://site.example:" + port + "/ HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT site.example:" + port + " HTTP/1.1\r\n\r\n"} {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			clients = append(clients, c)
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(request, "\n") {
				if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
		}
		if how == "context" {
			cancel()
		} else {
			_ = l.Close()
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", how, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it did not end", how)
		}
		buf := make([]byte, 1<<20)
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "egress.(") && !strings.Contains(g, "_test.go") {
				t.Errorf("%s: still there:\n%s", how, g)
			}
		}
		for _, c := range clients {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.Copy(io.Discard, c); err != nil && err.(net.Error).Timeout() {
				t.Errorf("%s: a client was left waiting", how)
			}
			_ = c.Close()
		}
		for range 100 { // net/http's own need a moment; the host keeps one for each connection
			if runtime.NumGoroutine() <= before+4 {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > before+4 {
			t.Errorf("%s: %d goroutines, before %d", how, n, before)
		}
	}
}

// TestRefusedIsBounded: what a client names is escaped and cut, and the list ends.
func TestRefusedIsBounded(t *testing.T) {
	h := site(t, func(http.ResponseWriter, *http.Request) {})
	s := serve(t, h.Listener)
	for i := range 30 {
		s.raw(t, fmt.Sprintf("CONNECT h%d.example:443 HTTP/1.1\r\n\r\n", i%25))
	}
	n, targets := s.Refused()
	if n != 30 || len(targets) != 20 || targets[0] != "h0.example:443" {
		t.Errorf("%d %q", n, targets)
	}
	s = serve(t, h.Listener)
	s.raw(t, "CONNECT "+strings.Repeat("ü", 1000)+":443 HTTP/1.1\r\n\r\n")
	s.raw(t, "CONNECT a\u202eb:443 HTTP/1.1\r\n\r\n")
	if n, targets := s.Refused(); n != 2 || len(targets[0]) > 600 || targets[1] != `a\u202eb:443` {
		t.Errorf("%d %q", n, targets)
	}
}

// TestRemedy: who is refused hears by which setting the owner would let it through, and nothing
// where none would.
func TestRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		rules egress.Config
		ask   []string
		want  string
	}{
		"nothing refused":  {egress.Config{}, nil, ""},
		"private":          {egress.Config{}, []string{"lan.example:443", "10.1.2.3:80", "lan.example:443"}, "The owner can allow it: `dodo config set egressAllow '*' 'lan.example:443' '10.1.2.3:80'`, where * keeps everything public; then dodo must be restarted."},
		"another port":     {egress.Config{}, []string{"site.example:22"}, "The owner can allow it: `dodo config set egressAllow '*' 'site.example:22'`, where * keeps everything public; then dodo must be restarted."},
		"a list":           {egress.Config{Allow: []string{"site.example"}}, []string{"lan.example:443"}, "The owner can add lan.example:443 to the setting egressAllow: `dodo config get egressAllow` shows the list, `dodo config set egressAllow ...` writes all of it; then dodo must be restarted."},
		"denied":           {egress.Config{Deny: []string{"site.example"}}, []string{"site.example:443"}, "The owner's setting egressDeny names what was refused: `dodo config get egressDeny` shows the list."},
		"never":            {egress.Config{}, []string{"224.0.0.1:80"}, ""},
		"never, with list": {egress.Config{Allow: []string{"x.example"}}, []string{"224.0.0.1:80"}, ""},
		"denied address":   {egress.Config{Deny: []string{"203.0.113.0/24"}}, []string{"203.0.113.7:80"}, "The owner's setting egressDeny names what was refused: `dodo config get egressDeny` shows the list."},
		"public address":   {egress.Config{}, []string{"1.1.1.1:443"}, "The owner can allow it: `dodo config set egressAllow '*' '1.1.1.1:443'`, where * keeps everything public; then dodo must be restarted."},
		"what is no host":  {egress.Config{}, []string{"a\u202eb:443"}, ""},
		"more than enough": {egress.Config{Allow: []string{"x.example"}}, []string{"a.example:1", "b.example:1", "c.example:1", "d.example:1", "e.example:1", "f.example:1", "a.example:1"}, "The owner can add a.example:1, b.example:1, c.example:1, d.example:1, e.example:1 ... to"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			c.rules.Resolve = book{"site.example": "203.0.113.7", "lan.example": "10.1.2.3"}.resolve
			p := egress.NewProxy(dialer(t, c.rules))
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- p.Serve(ctx, l) }()
			s := &served{Proxy: p, address: l.Addr().String()}
			for _, host := range c.ask {
				s.raw(t, "CONNECT "+host+" HTTP/1.1\r\n\r\n")
			}
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if n, _ := p.Refused(); n != len(c.ask) {
				t.Errorf("%d refused", n)
			}
			if got := p.Remedy(); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}
