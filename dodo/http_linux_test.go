package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site is a server of the built program that clients reach over HTTP.
type site struct {
	m    *machine
	cmd  *exec.Cmd
	base string // its origin
	err  *lockedBuffer
	gone chan struct{}
}

// start starts the program as `dodo start` does, on a free port unless args name one.
func (m *machine) start(args ...string) *site {
	m.t.Helper()
	return m.startWith(built.Path(m.t), args...)
}

// startWith is start of another build of the program.
func (m *machine) startWith(program string, args ...string) *site {
	m.t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--port") {
		args = append([]string{"--port", "0"}, args...)
	}
	s := &site{m: m, cmd: exec.Command(program, append([]string{"start"}, args...)...), err: &lockedBuffer{}, gone: make(chan struct{})}
	s.cmd.Env, s.cmd.Dir = m.Environ(), "/"
	pipe, err := s.cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(s.kill)
	at := make(chan string, 1)
	go func() {
		defer close(s.gone)
		lines := bufio.NewScanner(pipe)
		for lines.Scan() {
			fmt.Fprintln(s.err, lines.Text())
			if u := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); u != "" {
				select {
				case at <- u:
				default:
				}
			}
		}
		s.cmd.Wait()
	}()
	select {
	case s.base = <-at:
	case <-s.gone:
		m.t.Fatalf("it did not start: %s", s.err)
	case <-time.After(commandLimit):
		m.t.Fatalf("it does not say where it is: %s", s.err)
	}
	return s
}

func (s *site) kill() {
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// A browser logs in for its owner.
func browser() *http.Client {
	jar, _ := cookiejar.New(nil) // fails never
	return &http.Client{Jar: jar, Timeout: commandLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// tokens are what a client holds after a login.
type tokens struct {
	Client  string
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Scope   string `json:"scope"`
	Expires int    `json:"expires_in"`
}

const callback = "http://127.0.0.1:7777/callback"

// register registers a public client by itself.
func (s *site) register() string {
	s.m.t.Helper()
	var out struct {
		ID string `json:"client_id"`
	}
	r := s.post("/register", "application/json", `{"client_name":"Tester","redirect_uris":["`+callback+`"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"application_type":"native"}`)
	if r.status != http.StatusCreated || json.Unmarshal(r.body, &out) != nil || out.ID == "" {
		s.m.t.Fatalf("registration: %d %s", r.status, r.body)
	}
	return out.ID
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (s *site) post(path, kind, body string) answer {
	s.m.t.Helper()
	return s.do(http.DefaultClient, "POST", path, map[string]string{"Content-Type": kind}, body)
}

func (s *site) do(c *http.Client, method, path string, header map[string]string, body string) answer {
	s.m.t.Helper()
	target := path
	if !strings.HasPrefix(path, "http") {
		target = s.base + path
	}
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		s.m.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			req.Host = v
		}
		req.Header.Set(k, v)
	}
	r, err := c.Do(req)
	if err != nil {
		s.m.t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		s.m.t.Fatal(err)
	}
	return answer{r.StatusCode, r.Header, data}
}

// ask begins a login and gives the page's address and the browser that has it.
func (s *site) ask(client, scope string) (b *http.Client, page, verifier string) {
	s.m.t.Helper()
	verifier = strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {callback}, "scope": {scope}, "state": {"st"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {s.base + "/mcp"},
	}
	b = browser()
	r := s.do(b, "GET", "/auth?"+q.Encode(), nil, "")
	page = r.header.Get("Location")
	if r.status/100 != 3 || !strings.Contains(page, "/interaction/") {
		s.m.t.Fatalf("authorization: %d %s %s", r.status, page, r.body)
	}
	return b, page, verifier
}

// login goes the whole way: the client registers, the browser asks, the owner approves on
// the command line, and the client has tokens.
func (s *site) login(scope string) tokens {
	s.m.t.Helper()
	return s.loginAs(s.register(), scope)
}

func (s *site) loginAs(client, scope string) tokens {
	s.m.t.Helper()
	b, page, verifier := s.ask(client, scope)
	if r := s.do(b, "GET", page, nil, ""); r.status != 200 {
		s.m.t.Fatalf("consent page: %d %s", r.status, r.body)
	}
	var waiting consentsOut
	s.m.ok(&waiting, "auth", "pending", "--json")
	if len(waiting.Pending) != 1 {
		s.m.t.Fatalf("%+v", waiting)
	}
	s.m.ok(nil, "auth", "approve", waiting.Pending[0].ID)
	code := s.code(b, page)
	return s.redeem(client, code, verifier)
}

// code is what the browser brings back after the owner's word.
func (s *site) code(b *http.Client, page string) string {
	s.m.t.Helper()
	r := s.do(b, "GET", page, nil, "")
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindSubmatch(r.body)
	if form == nil {
		s.m.t.Fatalf("nothing to send: %d %s", r.status, r.body)
	}
	r = s.do(b, "POST", page+"/complete", map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": s.base}, "form="+url.QueryEscape(string(form[1])))
	to, err := url.Parse(r.header.Get("Location"))
	if err != nil || r.status/100 != 3 || !strings.HasPrefix(to.String(), callback) || to.Query().Get("state") != "st" || to.Query().Get("iss") != s.base {
		s.m.t.Fatalf("completion: %d %s %s", r.status, to, r.body)
	}
	return to.Query().Get("code")
}

func (s *site) redeem(client, code, verifier string) (t tokens) {
	s.m.t.Helper()
	r := s.token(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "client_id": {client}, "code_verifier": {verifier}, "resource": {s.base + "/mcp"}})
	if r.status != 200 || json.Unmarshal(r.body, &t) != nil || t.Access == "" {
		s.m.t.Fatalf("token: %d %s", r.status, r.body)
	}
	t.Client = client
	return t
}

func (s *site) token(q url.Values) answer {
	s.m.t.Helper()
	return s.post("/token", "application/x-www-form-urlencoded", q.Encode())
}

func (s *site) refresh(t tokens) answer {
	s.m.t.Helper()
	return s.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}, "client_id": {t.Client}, "resource": {s.base + "/mcp"}})
}

// rpc makes one modern request with a bearer token.
func (s *site) rpc(token, method, params string) answer {
	s.m.t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}`
	if params != "" {
		meta += "," + params
	}
	header := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if token != "" {
		header["Authorization"] = "Bearer " + token
	}
	var p struct {
		Name string `json:"name"`
	}
	if json.Unmarshal([]byte("{"+params+"}"), &p) == nil && p.Name != "" {
		header["Mcp-Name"] = p.Name
	}
	return s.do(http.DefaultClient, "POST", "/mcp", header, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+meta+`}}`)
}

// result is the JSON-RPC result, which may come as an event.
func (a answer) result(t testing.TB, into any) {
	t.Helper()
	body := a.body
	if strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
		for line := range bytes.Lines(a.body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && bytes.Contains(data, []byte(`"id":1`)) {
				body = data
			}
		}
	}
	var r struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &r); err != nil || len(r.Result) == 0 || json.Unmarshal(r.Result, into) != nil {
		t.Fatalf("%d %v %s", a.status, err, a.body)
	}
}

// call calls a tool and gives its envelope.
func (s *site) call(token, tool, args string) envelope {
	s.m.t.Helper()
	var r struct {
		Content envelope `json:"structuredContent"`
	}
	s.rpc(token, "tools/call", `"name":"`+tool+`","arguments":`+args).result(s.m.t, &r)
	return r.Content
}

// lockedBuffer is written by one goroutine and read by others.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLogin goes the way of a client: it finds out how to log in, registers, waits for the
// owner, calls, refreshes, outlives a restart, and is ended by the owner.
func TestLogin(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	s := m.start("--root", dir)
	for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
		r := s.do(http.DefaultClient, method, "/mcp", nil, "")
		if want := `Bearer resource_metadata="` + s.base + `/.well-known/oauth-protected-resource/mcp"`; r.status != 401 || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), want) {
			t.Errorf("%s: %d %q", method, r.status, r.header.Get("WWW-Authenticate"))
		}
	}
	tok := s.login("dodo:read dodo:write offline_access")
	var list struct {
		Tools []struct{ Name string }
	}
	s.rpc(tok.Access, "tools/list", "").result(t, &list)
	if len(list.Tools) < 5 || len(list.Tools) > 19 {
		t.Errorf("%d tools", len(list.Tools))
	}
	over := s.call(tok.Access, "project_overview", `{}`)
	if !over.OK || over.Data["root"] != dir || over.WorkspaceEpoch == "" {
		t.Fatalf("%+v", over)
	}
	in := func(e envelope, op, args string) string {
		return fmt.Sprintf(`{"workspaceId":%q,"workspaceEpoch":%q,"operation":%q,"args":%s}`, e.WorkspaceID, e.WorkspaceEpoch, op, args)
	}
	if e := s.call(tok.Access, "dodo_write", in(over, "write_file", `{"path":"new.txt","content":"by a client","expectedHash":null}`)); !e.OK {
		t.Errorf("%+v", e.Error)
	}
	if m.read("work/new.txt") != "by a client" {
		t.Error("nothing was written")
	}
	if e := s.call(tok.Access, "dodo_exec", in(over, "run_command", `{"command":"true"}`)); e.OK || e.Error.Code != "FORBIDDEN" || e.Error.Detail["requiredScope"] != "dodo:exec" {
		t.Errorf("%+v", e.Error)
	}
	// A restart, on the same port: the token is good, and the epoch is another.
	port := s.base[strings.LastIndex(s.base, ":")+1:]
	m.ok(nil, "stop")
	<-s.gone
	if st := s.cmd.ProcessState.ExitCode(); st != 0 {
		t.Errorf("it ended with %d: %s", st, s.err)
	}
	s = m.start("--port", port) // the root is remembered
	again := s.call(tok.Access, "project_overview", `{}`)
	if !again.OK || again.WorkspaceID != over.WorkspaceID || again.WorkspaceEpoch == over.WorkspaceEpoch {
		t.Errorf("%+v %+v", again, again.Error)
	}
	if e := s.call(tok.Access, "dodo_read", in(over, "list_files", `{}`)); e.OK || e.Error.Code != "STALE_WORKSPACE" {
		t.Errorf("%+v", e.Error)
	}
	r := s.refresh(tok)
	next := tokens{Client: tok.Client}
	if r.status != 200 || json.Unmarshal(r.body, &next) != nil || next.Refresh == tok.Refresh {
		t.Fatalf("%d %s", r.status, r.body)
	}
	var logins loginsOut
	m.ok(&logins, "auth", "list", "--json")
	if len(logins.Grants) != 1 || logins.Grants[0].Name != "Tester" || !logins.Grants[0].Live {
		t.Fatalf("%+v", logins)
	}
	m.ok(nil, "auth", "revoke", logins.Grants[0].ID)
	for _, x := range []string{tok.Access, next.Access} {
		if r := s.rpc(x, "tools/list", ""); r.status != 401 || !strings.Contains(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("%d %q", r.status, r.header.Get("WWW-Authenticate"))
		}
	}
	if r := s.refresh(next); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestLauncher: without a workspace clients log in and see the tools, and can do nothing.
func TestLauncher(t *testing.T) {
	m := newMachine(t)
	s := m.start()
	r := s.do(http.DefaultClient, "GET", "/healthz", nil, "")
	if r.status != 200 || !strings.Contains(string(r.body), `"workspaceSelected":false`) || strings.Contains(string(r.body), "/tmp") {
		t.Errorf("%d %s", r.status, r.body)
	}
	tok := s.login("dodo:read")
	for _, tool := range []string{"project_overview", "dodo_discover"} {
		if e := s.call(tok.Access, tool, `{}`); e.OK || e.Error.Code != "WORKSPACE_ACCESS_REQUIRED" || e.WorkspaceID != "" {
			t.Errorf("%s: %+v", tool, e)
		}
	}
	dir := m.workspace()
	m.ok(nil, "project", "add", dir)
	e := s.call(tok.Access, "project_overview", `{}`)
	if !e.OK || e.Data["selectProjectRequired"] != true || e.WorkspaceID != "" {
		t.Fatalf("%+v %+v", e, e.Error)
	}
	id := e.Data["projects"].([]any)[0].(map[string]any)["projectId"].(string)
	if e := s.call(tok.Access, "project_overview", `{"targetProjectId":"`+id+`"}`); !e.OK || e.Data["root"] != dir {
		t.Errorf("%+v", e.Error)
	}
	m.ok(nil, "access-mode", "managed")
	if e := s.call(tok.Access, "project_overview", `{}`); e.OK || e.Error.Code != "WORKSPACE_ACCESS_REQUIRED" {
		t.Errorf("%+v", e)
	}
	m.ok(nil, "access", "set", tok.Client, "--scopes", "read", "--root", dir)
	if e := s.call(tok.Access, "project_overview", `{}`); !e.OK {
		t.Errorf("%+v", e.Error)
	}
}

// TestLocked: with a public address that cannot be used nobody comes in.
func TestLocked(t *testing.T) {
	m := newMachine(t)
	m.ok(nil, "config", "set", "port", "21730")
	path := filepath.Join(m.Env()["DODO_CONFIG_DIR"], "config.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(`"port"`), []byte(`"publicUrl": "http://dodo.example.com", "port"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s := m.start()
	r := s.do(http.DefaultClient, "POST", "/mcp", nil, "{}")
	if r.status != 401 || !strings.Contains(string(r.body), "setup_required") || r.header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
		t.Errorf("%d %q %s", r.status, r.header.Get("WWW-Authenticate"), r.body)
	}
	for path, want := range map[string]int{"/healthz": 200, "/auth": 404, "/.well-known/oauth-protected-resource": 404, "/": 404} {
		if r := s.do(http.DefaultClient, "GET", path, nil, ""); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}
