package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// session makes a request of the era of sessions.
func (s *site) session(token, id, method, body string) answer {
	s.m.t.Helper()
	h := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + token, "MCP-Protocol-Version": "2025-06-18"}
	if id != "" {
		h["Mcp-Session-Id"] = id
	}
	return s.do(http.DefaultClient, method, "/mcp", h, body)
}

// TestLoginsApart: two logins, also of one client, share nothing that one of them made.
func TestLoginsApart(t *testing.T) {
	m := newMachine(t)
	s := m.start("--root", m.workspace())
	client := s.register()
	ann, bob := s.loginAs(client, "dodo:read dodo:write dodo:exec"), s.loginAs(client, "dodo:read dodo:write dodo:exec")
	over := s.call(ann.Access, "project_overview", `{}`)
	do := func(who tokens, tool, op, args string) envelope {
		t.Helper()
		return s.call(who.Access, tool, fmt.Sprintf(`{"workspaceId":%q,"workspaceEpoch":%q,"operation":%q,"args":%s}`, over.WorkspaceID, over.WorkspaceEpoch, op, args))
	}
	refused := func(e envelope, codes ...string) {
		t.Helper()
		if e.OK || !strings.Contains(strings.Join(codes, " "), e.Error.Code) {
			t.Errorf("%v %+v", e.Data, e.Error)
		}
	}
	made := func(e envelope, name string) string {
		t.Helper()
		id, _ := e.Data[name].(string)
		if !e.OK || id == "" {
			t.Fatalf("%v %+v", e.Data, e.Error)
		}
		return id
	}

	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	id := s.session(ann.Access, "", "POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).header.Get("Mcp-Session-Id")
	for method, body := range map[string]string{"POST": list, "GET": "", "DELETE": ""} {
		if r := s.session(bob.Access, id, method, body); r.status != 404 {
			t.Errorf("another's session, %s: %d", method, r.status)
		}
	}
	if r := s.session(ann.Access, id, "POST", list); id == "" || r.status != 200 {
		t.Errorf("%d", r.status)
	}

	job := fmt.Sprintf(`{"jobId":%q}`, made(do(ann, "dodo_exec", "run_command", `{"command":"sleep 50","waitMs":1000}`), "jobId"))
	for _, op := range []string{"job_status", "job_output", "job_wait"} {
		refused(do(bob, "dodo_read", op, job), "FORBIDDEN")
	}
	refused(do(bob, "dodo_exec", "job_cancel", job), "FORBIDDEN")
	if e := do(bob, "dodo_read", "list_jobs", `{}`); !e.OK || len(e.Data["jobs"].([]any)) != 0 {
		t.Errorf("%v %+v", e.Data, e.Error)
	}

	const same = `{"command":"echo $$","idempotencyKey":"the-same-key"}`
	if a, b := made(do(ann, "dodo_exec", "run_command", same), "jobId"), made(do(bob, "dodo_exec", "run_command", same), "jobId"); a == b {
		t.Errorf("one key is one call of both: %s", a)
	}

	plan := do(ann, "dodo_write", "preview_changes", `{"operations":[{"op":"create","path":"plan.txt","content":"1"}]}`)
	apply := fmt.Sprintf(`{"planId":%q,"planHash":%q,"idempotencyKey":"apply-1234"}`, made(plan, "planId"), made(plan, "planHash"))
	refused(do(bob, "dodo_write", "apply_changes", apply), "FORBIDDEN", "NOT_FOUND", "PLAN_EXPIRED")
	if e := do(ann, "dodo_write", "apply_changes", apply); !e.OK {
		t.Errorf("%+v", e.Error)
	}
	change := made(do(ann, "dodo_write", "write_file", `{"path":"one.txt","content":"1","expectedHash":null}`), "changesetId")
	refused(do(bob, "dodo_write", "rollback_changes", fmt.Sprintf(`{"changesetId":%q,"idempotencyKey":"undo-12345"}`, change)), "FORBIDDEN", "NOT_FOUND")

	// What the owner approves is one login's call.
	m.ok(nil, "access-mode", "managed")
	m.ok(nil, "access", "set", client, "--scopes", "read,write,exec", "--root", over.Data["root"].(string))
	const write = `{"path":"asked.txt","content":"1","expectedHash":null}`
	refused(do(ann, "dodo_write", "write_file", write), "APPROVAL_REQUIRED")
	var waiting struct {
		Pending []struct {
			ID string `json:"approvalId"`
		} `json:"approvals"`
	}
	m.ok(&waiting, "pending", "--json")
	if len(waiting.Pending) != 1 {
		t.Fatalf("%+v", waiting)
	}
	m.ok(nil, "approve", waiting.Pending[0].ID)
	refused(do(bob, "dodo_read", "approval_status", fmt.Sprintf(`{"approvalId":%q}`, waiting.Pending[0].ID)), "NOT_FOUND", "FORBIDDEN")
	refused(do(bob, "dodo_write", "write_file", write), "APPROVAL_REQUIRED")
	if e := do(ann, "dodo_write", "write_file", write); !e.OK {
		t.Errorf("%+v", e.Error)
	}
	for _, secret := range []string{ann.Access, ann.Refresh, bob.Access, bob.Refresh} {
		if strings.Contains(s.err.String(), secret) {
			t.Error("a token is in the log")
		}
	}
}

// TestStrangersReachNothing: a visitor that names an address as its client makes the server
// read nothing of the machine and its network, although the owner let commands reach it.
func TestStrangersReachNothing(t *testing.T) {
	m := newMachine(t)
	var asked atomic.Int32
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	go func() {
		for c, err := inside.Accept(); err == nil; c, err = inside.Accept() {
			asked.Add(1)
			c.Close()
		}
	}()
	connected := inside.Addr().String()
	m.ok(nil, "config", "set", "clientMetadata", "on")
	m.ok(nil, "config", "set", "egressAllow", connected)
	s := m.start("--root", m.workspace())
	q := url.Values{"client_id": {"https://" + connected + "/client.json"}, "redirect_uri": {callback}, "response_type": {"code"}}
	r := s.do(browser(), "GET", "/auth?"+q.Encode(), nil, "")
	if r.status != http.StatusBadRequest {
		t.Errorf("%d %s", r.status, r.body)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}
