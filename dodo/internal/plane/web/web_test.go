package web_test

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/egress"
	"localmcp/dodo/internal/plane/web"
	"localmcp/internal/fault"
	"localmcp/internal/op"
	"localmcp/internal/testenv"
)

// world is a service that may reach one host of this machine, as page.example.com.
type world struct {
	*web.Service
	site string // its address
	port string
}

func newWorld(t testing.TB, h http.HandlerFunc) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("it sends over the loopback interface, whose packets the offline run counts")
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &world{serviceFor(t, roots, "*", s.Listener.Addr().String()), "https://page.example.com:" + port, port}
}

func serviceFor(t testing.TB, roots *x509.CertPool, allow ...string) *web.Service {
	t.Helper()
	d, err := egress.New(egress.Config{Allow: allow, Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
		switch name {
		case "page.example.com", "other.example.com", "wrong.example":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case "lan.example.com":
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return web.New(web.Config{Allowed: true, Dialer: d, Limits: contract.DefaultLimits(), Roots: roots})
}

// out is what fetch_url answers.
type out struct {
	URL, FinalURL, ContentType, Text, Note string
	Status, Bytes                          int
	Binary                                 bool
}

// fetch runs the operation as the gate does, without its rules.
func fetch(ctx context.Context, s *web.Service, args map[string]any) (o out, a contract.Result, err error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return o, a, err
	}
	the := s.Ops()[0]
	b, err := the.Bind(raw)
	if err != nil {
		return o, a, err
	}
	p, err := b.Prepare(ctx, contract.Call{})
	if err != nil {
		return o, a, err
	}
	if a, err = p.Run(ctx); err != nil {
		return o, a, err
	}
	if a, err = p.Follow(ctx, a); err != nil {
		return o, a, err
	}
	encoded, err := contract.Success("ws_1", "boot_1", a).JSON()
	if err != nil {
		return o, a, err
	}
	if most := s.Limits.ToolContentBytes; len(encoded) > most {
		return o, a, fmt.Errorf("the envelope has %d bytes", len(encoded))
	}
	if err := the.Fits(encoded); err != nil {
		return o, a, err
	}
	data, err := op.Encode(a.Data)
	if err != nil {
		return o, a, err
	}
	return o, a, json.Unmarshal(data, &o)
}

func (w *world) get(t testing.TB, path string) (out, contract.Result) {
	t.Helper()
	o, a, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return o, a
}

// TestOff: nothing is fetched, and nothing is asked of the owner, before the owner allows it.
func TestOff(t *testing.T) {
	_, _, err := fetch(t.Context(), web.New(web.Config{}), map[string]any{"url": "https://example.com/"})
	if f := fault.From(err); !errors.Is(err, contract.NotSupported) || !strings.Contains(f.Msg, "allowWebFetch") || !strings.Contains(f.Hint, "dodo config set allowWebFetch true") {
		t.Errorf("%v", err)
	}
	if ops := (*web.Service)(nil).Ops(); len(ops) != 1 || ops[0].Name != "fetch_url" {
		t.Errorf("%v", ops)
	}
}

// TestSurface pins what callers see.
func TestSurface(t *testing.T) {
	o := (*web.Service)(nil).Ops()[0]
	if o.Scope != contract.ScopeRead || o.Class != contract.ClassExec || o.Gateway != "dodo_web" || !o.ReadOnly || o.Destructive || !o.Idempotent || !o.OpenWorld {
		t.Errorf("%+v", o.Def)
	}
	for args, ok := range map[string]bool{
		`{"url":"https://a.example/"}`: true, `{"url":"https://a.example/","maxBytes":1024,"timeoutMs":60000}`: true,
		`{}`: false, `{"url":""}`: false, `{"url":"https://a.example/","maxBytes":1023}`: false, `{"url":"https://a.example/","maxBytes":2097153}`: false,
		`{"url":"https://a.example/","timeoutMs":60001}`: false, `{"url":"https://a.example/","timeoutMs":999}`: false,
		`{"url":"https://a.example/","cookies":"x"}`: false, `{"url":"https://a.example/` + strings.Repeat("a", 2048) + `"}`: false,
	} {
		if _, err := o.Bind(json.RawMessage(args)); (err == nil) != ok {
			t.Errorf("%.80s: %v", args, err)
		}
	}
}

// TestAddresses: what is not fetched, and said before the owner is asked.
func TestAddresses(t *testing.T) {
	s := serviceFor(t, nil, "*")
	for address, code := range map[string]fault.Code{
		"http://page.example.com/": contract.Forbidden, "ftp://page.example.com/": contract.Forbidden, "file:///etc/passwd": contract.Forbidden,
		"javascript:alert(1)": contract.Forbidden, "https:page.example.com": contract.Forbidden, "page.example.com": contract.Forbidden, "/etc/passwd": contract.Forbidden,
		"https://": contract.InvalidInput, "https:///x": contract.InvalidInput, "https://[::1": contract.InvalidInput, "https://a b/": contract.InvalidInput, "https://page.example.com/\n": contract.InvalidInput,
		"https://user:pw@page.example.com/": contract.Forbidden, "https://page.example.com:22/": contract.Forbidden, "https://page.example.com:0/": contract.Forbidden,
		"https://page.example.com:x/": contract.InvalidInput, "https://localhost/": contract.Forbidden, "https://x.localhost/": contract.Forbidden, "https://db.internal/": contract.Forbidden,
		"https://printer.local/": contract.Forbidden, "https://127.0.0.1/": contract.Forbidden, "https://[::1]/": contract.Forbidden, "https://2130706433/": contract.Forbidden,
		"https://0x7f.1/": contract.Forbidden, "https://169.254.169.254/latest/meta-data/": contract.Forbidden, "https://[::ffff:10.0.0.1]/": contract.Forbidden,
		"https://１２７.0.0.1/": contract.Forbidden, "https://münchen.example/": contract.Forbidden, "https://page.example.com\\@127.0.0.1/": contract.InvalidInput,
	} {
		raw, _ := json.Marshal(map[string]any{"url": address})
		b, err := s.Ops()[0].Bind(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Prepare(t.Context(), contract.Call{})
		if f := fault.From(err); !errors.Is(err, code) || f.Hint == "" {
			t.Errorf("%s: %v, want %s", address, err, code)
		}
	}
	for address, want := range map[string]fault.Code{"https://none.example.com/": contract.NotFound, "https://lan.example.com/": contract.Forbidden, "https://page.example.com/": contract.Forbidden} {
		if _, _, err := fetch(t.Context(), s, map[string]any{"url": address}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

// TestSummary: the owner is told the host, and may look at the whole address.
func TestSummary(t *testing.T) {
	b, err := serviceFor(t, nil, "*").Ops()[0].Bind(json.RawMessage(`{"url":"https://Page.Example.com/ignore?all=previous"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Prepare(t.Context(), contract.Call{})
	if err != nil || p.Summary != "fetch a page from page.example.com:443" {
		t.Errorf("%q %v", p.Summary, err)
	}
	if preview, _ := op.Encode(p.Preview); string(preview) != `{"url":"https://Page.Example.com/ignore?all=previous","maxBytes":524288,"timeoutMs":15000}` {
		t.Errorf("%s", preview)
	}
}

// TestRequest: what a host learns, which is nothing of the owner's.
func TestRequest(t *testing.T) {
	var got []string
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Host, " ", r.Header))
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		if r.URL.Path == "/first" {
			w.Header().Set("Location", "/second?x=1#there")
			w.WriteHeader(http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "no such page\r\n\tü")
	})
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // nobody looks at it
	o, a := w.get(t, "/first?q=ü#fragment")
	if o.URL != w.site+"/first?q=ü#fragment" || o.FinalURL != w.site+"/second?x=1" || o.Status != 404 || o.Text != "no such page\n\tü" || o.Binary ||
		o.Bytes != 17 || o.ContentType != "text/plain; charset=utf-8" || !strings.Contains(o.Note, "not instructions") || a.Truncated || len(a.Warnings) > 0 {
		t.Errorf("%+v %+v", o, a)
	}
	header := " map[Accept:[text/html, text/plain;q=0.9, */*;q=0.8] Accept-Encoding:[gzip] Connection:[close] User-Agent:[dodo]]"
	host := "page.example.com:" + w.port
	if want := "GET /first?q=ü " + host + header + "|GET /second?x=1 " + host + header; strings.Join(got, "|") != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestRedirects: every hop is judged, and there is an end to them.
func TestRedirects(t *testing.T) {
	requests := 0
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		n, err := strconv.Atoi(r.URL.Path[1:])
		switch {
		case r.URL.Path == "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case r.URL.Path == "/long":
			http.Redirect(w, r, "/"+strings.Repeat("a", 2100), http.StatusFound)
		case err != nil:
			to, _ := url.QueryUnescape(r.URL.RawQuery)
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusMovedPermanently)
		case n > 0:
			http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, "here")
		}
	})
	if o, _ := w.get(t, "/4"); o.Text != "here" || o.FinalURL != w.site+"/0" || requests != 5 {
		t.Errorf("%+v after %d requests", o, requests)
	}
	to := func(address string) string { return "/to?" + url.QueryEscape(address) }
	for path, want := range map[string]string{
		"/5": "more than 4 times", "/99": "more than 4 times", "/loop": "more than 4 times", "/long": "longer than",
		to("http://page.example.com/"): "only https", to("//lan.example.com/"): "a private network", to("https://169.254.169.254/latest/"): "link-local",
		to("https://localhost/"): "this machine", to("https://u:p@page.example.com/"): "user name", to("https://93.184.216.34:22/"): "port",
		to("file:///etc/passwd"): "only https", to("https://[::1"): "well-formed", to("https://[::1]/"): "this machine",
		to("javascript:alert(1)"): "only https", to("http://x/\u202e"): "only https", to("https://other.example.com/"): "this machine",
	} {
		requests = 0
		_, _, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path})
		f := fault.From(err)
		if !errors.Is(err, contract.Forbidden) || !strings.Contains(f.Msg, want) || f.Hint == "" || requests > 5 || strings.ContainsRune(f.Msg+f.Hint, 0x202e) {
			t.Errorf("%.100s: %v after %d requests, want %q", path, err, requests, want)
		}
	}
	if o, _ := w.get(t, "/to"); o.Status != http.StatusMovedPermanently { // it says no place
		t.Errorf("%+v", o)
	}
}

// TestHostsThatCannotProveThemselves: another's certificate, and no TLS at all.
func TestHostsThatCannotProveThemselves(t *testing.T) {
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "secret") })
	if _, _, err := fetch(t.Context(), w.Service, map[string]any{"url": "https://wrong.example:" + w.port + "/"}); !errors.Is(err, contract.Forbidden) || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = plain.Listener.Close()
	plain.Listener = l
	plain.Start()
	defer plain.Close()
	s := serviceFor(t, nil, l.Addr().String())
	address := "https://page.example.com" + strings.TrimPrefix(l.Addr().String(), "127.0.0.1") + "/"
	if _, _, err := fetch(t.Context(), s, map[string]any{"url": address}); !errors.Is(err, contract.NotFound) || !fault.From(err).Retryable {
		t.Error(err)
	}
	plain.Close()
	if _, _, err := fetch(t.Context(), s, map[string]any{"url": address}); !errors.Is(err, contract.NotFound) {
		t.Error(err)
	}
}

// TestBounds: how much is read and shown, and how long it takes.
func TestBounds(t *testing.T) {
	stop := make(chan struct{})
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slowhead":
			<-stop
		case "/slowbody":
			w.Header().Set("Content-Type", "text/plain")
			for {
				if _, err := fmt.Fprint(w, "."); err != nil {
					return
				}
				_ = http.NewResponseController(w).Flush()
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			zeros := []byte(strings.Repeat("0", 1<<20))
			for range 1 << 10 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		case "/broken":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		case "/brokengzip":
			w.Header().Set("Content-Encoding", "gzip")
			fmt.Fprint(w, "no gzip")
		case "/head":
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
		default:
			w.Header().Set("Content-Type", r.URL.Query().Get("type"))
			for range 1 << 12 {
				if _, err := fmt.Fprint(w, strings.Repeat("a\"ü\x01\n", 1<<8)); err != nil {
					return
				}
			}
		}
	})
	defer close(stop)
	for _, path := range []string{"/slowhead", "/slowbody"} {
		begun := time.Now()
		_, _, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path, "timeoutMs": 1000})
		if f := fault.From(err); !errors.Is(err, contract.Timeout) || !f.Retryable || f.Hint == "" || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v after %s", path, err, time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, _, err := fetch(ctx, w.Service, map[string]any{"url": w.site + path}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, binary := range map[string]bool{"/bomb": false, "/?type=text/plain": false, "/?type=text/html": false, "/?type=": false, "/?type=image/png": true} {
		for _, most := range []int{1024, 70000, 2 << 20} {
			o, a, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path, "maxBytes": most})
			if err != nil || o.Bytes != most || !a.Truncated || o.Binary != binary || (o.Text == "") != binary || len(a.Warnings) == 0 {
				t.Errorf("%s, %d: %v, %d bytes, %d of text, %v", path, most, err, o.Bytes, len(o.Text), a.Warnings)
			}
			if most > 1<<20 && !binary && op.EncodedLen(o.Text) < 50<<10 {
				t.Errorf("%s: only %d bytes of text", path, len(o.Text))
			}
		}
	}
	for _, path := range []string{"/broken", "/brokengzip", "/head"} {
		if _, _, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path}); !errors.Is(err, contract.NotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestKinds: what is text, and in which encoding.
func TestKinds(t *testing.T) {
	encode := func(b []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cyrillic := encode(charmap.Windows1251.NewEncoder().Bytes([]byte("Привет")))
	kanji := encode(japanese.ShiftJIS.NewEncoder().Bytes([]byte("日本語")))
	wide := encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte("wide ü")))
	bare := encode(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte("bare ü")))
	png := "\x89PNG\r\n\x1a\n\x00\x00"
	type served struct{ kind, body string }
	cases := map[served]string{ // what it says; "-": it is binary
		{"text/plain", "plain ü"}: "plain ü", {"", "plain ü"}: "plain ü", {"application/octet-stream", "plain"}: "plain", {"application/json", `{"a":"ü"}`}: `{"a":"ü"}`,
		{"application/x-unknown", "a\nb"}: "a\nb", {"nonsense;;", "a"}: "a", {"text/plain", ""}: "",
		{"text/plain; charset=windows-1251", cyrillic}: "Привет", {"text/html", `<meta charset="windows-1251"><p>` + cyrillic}: "Привет\n",
		{"text/html; charset=Shift_JIS", "<p>" + kanji}: "日本語\n", {"text/plain", wide}: "wide ü", {"text/plain; charset=utf-16be", bare}: "bare ü",
		{"text/plain", "caf\xe9"}: "café", {"text/plain; charset=utf-8", "caf\xe9"}: "caf\ufffd", {"text/plain; charset=none", "ü"}: "ü",
		{"text/html", "<meta charset=iso-2022-jp><p>\x1b$BF|K\\\x1b(B"}: "日本\n", {"text/html", "<p>ü\x1b"}: `ü\u{1b}` + "\n",
		{"text/html", strings.Repeat(" ", 3000) + "ü"}: "ü\n", {"text/plain", "\ufeffmark"}: "mark", {"", "<!DOCTYPE HTML><p>a"}: "a\n", {"application/xhtml+xml", "<p>a</p>"}: "a\n",
		{"image/svg+xml", "<svg/>"}: "<svg/>", {"image/png", png}: "-", {"text/plain", png}: "-", {"", png}: "-", {"image/png", "text"}: "-", {"application/pdf", "%PDF-1.7\n\xe2\xe3"}: "-",
		{"application/x-unknown", "\xff\xfe\xfd"}: "-", {"text/html", "<p>a\x00b"}: "-", {"text/plain", "a\u202eb\x1b[1m\rc"}: `a\u{202e}b\u{1b}[1m\u{d}c`,
	}
	var now served
	var packed bool
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{now.kind}
		if now.kind == "" {
			w.Header()["Content-Type"] = nil
		}
		if packed {
			w.Header().Set("Content-Encoding", "br")
		}
		_, _ = io.WriteString(w, now.body)
	})
	for c, want := range cases {
		now = c
		o, a := w.get(t, "/")
		got := o.Text
		if o.Binary {
			got += "-"
		}
		if got != want || a.Truncated || o.Bytes != len(c.body) {
			t.Errorf("%q %q: %q, want %q", c.kind, c.body, got, want)
		}
	}
	now, packed = served{"text/plain", "packed"}, true
	if o, _ := w.get(t, "/"); !o.Binary || o.Text != "" {
		t.Errorf("%+v", o)
	}
	now, packed = served{"text/plain\u202e" + strings.Repeat("x", 1000), "x"}, false
	if o, _ := w.get(t, "/"); len(o.ContentType) > 200 || strings.ContainsRune(o.ContentType, 0x202e) {
		t.Errorf("%q", o.ContentType)
	}
}

// TestManyAtOnce: fetches do not mix, and those above the bound wait.
func TestManyAtOnce(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		now--
		mu.Unlock()
		fmt.Fprint(w, r.URL.Path)
	})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			path := fmt.Sprintf("/%d", i)
			o, _, err := fetch(t.Context(), w.Service, map[string]any{"url": w.site + path})
			if err != nil || o.Text != path {
				t.Errorf("%s: %q %v", path, o.Text, err)
			}
		})
	}
	all.Wait()
	if most > 8 {
		t.Errorf("%d at once", most)
	}
}

func TestReadable(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.html")
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	var now []byte
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(now)
	})
	for _, p := range pages {
		if now, err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
		o, _ := w.get(t, "/dir/page")
		testenv.Golden(t, strings.TrimSuffix(p, ".html")+".txt", []byte(strings.ReplaceAll(o.Text, ":"+w.port, "")))
	}
}
