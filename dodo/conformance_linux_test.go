package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"localmcp/internal/mcptest"
	"localmcp/internal/testenv"
)

// fixture is dodo's HTTP stack with what the conformance suite asks for by name.
var fixture = testenv.Program{Package: "./testdata/conformance", Tags: "conformance"}

// suiteLimit is how long one run of the suite may take.
const suiteLimit = 2 * time.Minute

// withToken stands before a server and sends a token with every request, as the suite cannot.
// Its address is known before the server's, whose owner lets it call.
type withToken struct {
	*httptest.Server

	mu            sync.Mutex // guards what follows
	target, token string
}

// lead says which server it is, and with which token.
func (w *withToken) lead(target, token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target, w.token = target, token
}

func newWithToken(t *testing.T) *withToken {
	w := &withToken{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: patient{}, Rewrite: func(r *httputil.ProxyRequest) {
		w.mu.Lock()
		defer w.mu.Unlock()
		to, _ := url.Parse(w.target) // a test's own
		r.SetURL(to)
		r.Out.Host = r.In.Host // what the suite says it is, so that the server can refuse it
		r.Out.Header.Set("Authorization", "Bearer "+w.token)
	}}
	w.Server = httptest.NewServer(proxy)
	t.Cleanup(w.Close)
	return w
}

// patient comes again when it came too often: the suite asks hundreds of times in a second.
type patient struct{}

// RoundTrip makes a request, as often as it must.
func (patient) RoundTrip(r *http.Request) (*http.Response, error) {
	// The whole body first: the library gives up a connection on which an answer begins while
	// it still looks for the body's end.
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for {
		r.Body = io.NopCloser(bytes.NewReader(body))
		res, err := http.DefaultTransport.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusTooManyRequests {
			return res, err
		}
		res.Body.Close()
		seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err != nil {
			return nil, fmt.Errorf("too often, and not for how long: %w", err)
		}
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
}

// startFixture runs the server with what the suite asks for, and gives its address.
func startFixture(t *testing.T, origin string) string {
	t.Helper()
	cmd := exec.Command(fixture.Path(t), origin)
	log := &lockedBuffer{}
	cmd.Stderr = log
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
		if t.Failed() {
			t.Logf("the server said: %s", log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return strings.TrimSpace(line)
}

// suite is a run of the conformance suite.
func suite(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	line := append(mcptest.Conformance(t), args...)
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

var passedPattern = regexp.MustCompile(`(?m)^✓ ([\w-]+): ([1-9]\d*) passed, 0 failed`)

// passed are the scenarios of a run that passed; one that checked nothing did not.
func passed(out []byte) map[string]bool {
	all := map[string]bool{}
	for _, m := range passedPattern.FindAllSubmatch(out, -1) {
		all[string(m[1])] = true
	}
	return all
}

// required are the scenarios of a revision that a server must pass, as the suite lists them.
func required(t *testing.T, revision string) []string {
	t.Helper()
	out, err := suite(t, "list", "--requirements", revision).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(out), "Server scenarios")
	if !ok {
		t.Fatalf("%s", out)
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^\s+- ([\w-]+)$`).FindAllStringSubmatch(list, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestConformance: what each revision of the protocol requires of a server is so of dodo's
// HTTP stack. Many scenarios call what no product has: the fixture has it.
func TestConformance(t *testing.T) {
	mcptest.Conformance(t) // or it is skipped here
	w := newWithToken(t)
	w.lead(startFixture(t, w.URL), "suite")
	for revision, count := range map[string]int{"2025-11-25": 30, "2026-07-28": 37} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			out, err := suite(t, "server", "--url", w.URL+"/mcp", "--requirements", revision).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			good, all := passed(out), required(t, revision)
			for _, name := range all {
				if !good[name] {
					t.Errorf("%s did not pass", name)
				}
			}
			if len(all) != count {
				t.Errorf("%d scenarios are required, %d were: look what changed", len(all), count)
			}
			// The suite counts these as good to have.
			for _, name := range []string{"json-schema-2020-12", "server-session-lifecycle", "http-header-validation", "http-custom-header-server-validation"} {
				if strings.Contains(string(out), " "+name+":") && !good[name] {
					t.Errorf("%s did not pass", name)
				}
			}
			t.Logf("%d scenarios passed, %d required", len(good), len(all))
		})
	}
}

// TestConformanceOfDodo: the scenarios that need nothing but a server, and the one program that
// people use. The others of a run fail: dodo has no tools of such names.
func TestConformanceOfDodo(t *testing.T) {
	mcptest.Conformance(t)
	m := newMachine(t)
	dir := m.workspace()
	w := newWithToken(t)
	m.ok(nil, "config", "set", "allowedOrigins", w.URL)
	s := m.start("--root", dir)
	w.lead(s.base, s.login("dodo:read").Access)
	both := []string{"tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"}
	for revision, more := range map[string][]string{
		"2025-11-25": {"server-initialize", "server-session-lifecycle", "ping"},
		"2026-07-28": {"caching", "http-header-validation", "sep-2164-resource-not-found", "input-required-result-unsupported-methods"},
	} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			out, err := suite(t, "server", "--url", w.URL+"/mcp", "--requirements", revision).CombinedOutput()
			if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			good := passed(out)
			for _, name := range slices.Concat(both, more) {
				if !good[name] {
					t.Errorf("%s did not pass", name)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

// TestConformanceOfLogins: the suite finds the authorization server and gets a code and a
// token of it, while the owner approves.
func TestConformanceOfLogins(t *testing.T) {
	mcptest.Conformance(t)
	m := newMachine(t)
	m.Set("BROWSER_DODO", built.Path(t))
	m.Set("BROWSER_LOG", m.Path("visits"))
	s := m.start()
	free := httptest.NewServer(nil) // the suite cannot choose a port by itself
	at := free.Listener.Addr().String()
	free.Close()
	var client clientOut
	m.ok(&client, "auth", "add-client", "--public", "--redirect-uri", "http://"+at+"/callback", "--json")
	cmd := suite(t, "authorization", "--url", s.base, "--client-id", client.ID, "--resource", s.base+"/mcp", "--port", at[strings.LastIndex(at, ":")+1:])
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if page := strings.TrimSpace(lines.Text()); strings.HasPrefix(page, s.base+"/auth?") {
			visit := exec.Command(visitor.Path(t), page)
			visit.Env = m.Environ()
			if said, err := visit.CombinedOutput(); err != nil {
				t.Errorf("the browser: %v\n%s", err, said)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	for _, name := range []string{"authorization-server-metadata-endpoint", "authorization-code-grant"} {
		if !passed(out.Bytes())[name] {
			t.Errorf("%s did not pass\n%s", name, &out)
		}
	}
}
