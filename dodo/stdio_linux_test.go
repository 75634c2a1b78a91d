package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"localmcp/dodo/internal/door/surface"
	"localmcp/internal/mcptest"
)

// discover is the context of a request of the modern era.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// A client speaks to a stdio server in raw frames, in one era.
type client struct {
	*mcptest.Peer
	t      testing.TB
	modern bool
	where  string // the context of a call, as JSON members
}

// speak starts a server on a root and opens a session.
func (m *machine) speak(era, root string, args ...string) *client {
	m.t.Helper()
	line := append([]string{built.Path(m.t), "stdio", "--root", root}, args...)
	c := &client{Peer: mcptest.Start(m.t, m.Environ(), line...), t: m.t, modern: era == "modern"}
	if !c.modern {
		c.Call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// params adds what the era wants.
func (c *client) params(members string) string {
	if !c.modern {
		return "{" + members + "}"
	}
	if members != "" {
		members = "," + members
	}
	return "{" + modern + members + "}"
}

func (c *client) tools() []string {
	c.t.Helper()
	list := c.Call("tools/list", c.params(""))
	var r struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(list.Result, &r); err != nil {
		c.t.Fatalf("%s: %v", list.Result, err)
	}
	mcptest.LintTools(c.t, list.Result)
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// envelope is an answer.
type envelope struct {
	OK             bool
	WorkspaceID    string
	WorkspaceEpoch string
	Data           map[string]any
	Error          *struct {
		Code, Message, Recovery string
		Retryable               bool
		Detail                  map[string]any
	}
	Warnings   []string
	Truncated  bool
	NextCursor string
}

// raw makes a tool call and checks that its two forms say the same, and that isError is the
// opposite of ok.
func (c *client) raw(tool, args string) envelope {
	c.t.Helper()
	return c.answer(c.Call("tools/call", c.params(fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args))))
}

// answer reads what came for a tool call.
func (c *client) answer(m mcptest.Message) envelope {
	c.t.Helper()
	if m.Error != nil {
		c.t.Fatal(m.Error.Message)
	}
	var r struct {
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		c.t.Fatal(err)
	}
	var e envelope
	if err := json.Unmarshal(r.StructuredContent, &e); err != nil {
		c.t.Fatalf("%s: %v", r.StructuredContent, err)
	}
	if r.IsError == e.OK {
		c.t.Errorf("%s: isError %v, ok %v", r.StructuredContent, r.IsError, e.OK)
	}
	if !sameJSON(r.Content[0].Text, string(r.StructuredContent)) {
		c.t.Errorf("the text is %s, the structured content %s", r.Content[0].Text, r.StructuredContent)
	}
	return e
}

// sameJSON compares values: a text may be written in several ways.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// call calls an operation directly, with the workspace's context.
func (c *client) call(op, members string) envelope {
	c.t.Helper()
	if c.where == "" && op != "project_overview" {
		o := c.raw("project_overview", "{}")
		if !o.OK {
			c.t.Fatalf("%+v", o.Error)
		}
		c.where = fmt.Sprintf(`"workspaceId":%q,"workspaceEpoch":%q`, o.Data["workspaceId"], o.Data["workspaceEpoch"])
	}
	if members != "" && c.where != "" {
		members = "," + members
	}
	return c.raw(op, "{"+c.where+members+"}")
}

// fine is call, and it went well.
func (c *client) fine(op, members string) envelope {
	c.t.Helper()
	e := c.call(op, members)
	if !e.OK {
		c.t.Fatalf("%s: %+v", op, e.Error)
	}
	return e
}

// workspace makes a directory to work on.
func (m *machine) workspace() string {
	m.t.Helper()
	dir := m.Path("work")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	m.Write(m.t, "work/a.txt", "one\r\ntwo\r\nthree")
	m.Write(m.t, "work/sub/b.go", "package sub\n\nfunc B() int { return 1 }\n")
	return dir
}

// TestStdioBothEras goes through a session in each era: list, overview, search, read, a
// stale edit refused, an edit, the history, a rollback.
func TestStdioBothEras(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			m := newMachine(t)
			dir := m.workspace()
			c := m.speak(era, dir)
			if got := c.tools(); !slices.Equal(got, shown(surface.Full).Names()) {
				t.Errorf("tools %v", got)
			}
			found := c.fine("search_code", `"query":"func B"`)
			if found.Data["totalMatches"] != 1.0 {
				t.Errorf("%v", found.Data)
			}
			read := c.fine("read_files", `"files":[{"path":"a.txt"}]`)
			hash := read.Data["files"].([]any)[0].(map[string]any)["hash"].(string)
			edit := func(hash string) string {
				return fmt.Sprintf(`"path":"a.txt","edits":[{"find":"two\n","replace":"2\nand a half\n"}],"expectedHash":%q`, hash)
			}
			if e := c.call("edit_file", edit("sha256:"+strings.Repeat("0", 64))); e.OK || e.Error.Code != "FILE_CHANGED" {
				t.Fatalf("a stale edit: %+v", e)
			}
			done := c.fine("edit_file", edit(hash))
			if got, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != "one\r\n2\r\nand a half\r\nthree" {
				t.Fatalf("after the edit: %q", got)
			}
			history := c.fine("change_history", "")
			if sets := history.Data["changesets"].([]any); len(sets) != 1 || sets[0].(map[string]any)["changesetId"] != done.Data["changesetId"] {
				t.Errorf("%v", history.Data)
			}
			c.fine("rollback_changes", fmt.Sprintf(`"changesetId":%q,"idempotencyKey":"12345678"`, done.Data["changesetId"]))
			if got, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != "one\r\ntwo\r\nthree" {
				t.Fatalf("after the rollback: %q", got)
			}
			again := c.fine("rollback_changes", fmt.Sprintf(`"changesetId":%q,"idempotencyKey":"12345678"`, done.Data["changesetId"]))
			if again.Data["replayed"] != true {
				t.Errorf("the same rollback again: %v", again.Data)
			}
			begun := time.Now()
			c.CloseInput()
			if err := c.WaitExit(2 * time.Second); err != nil {
				t.Errorf("the end: %v\n%s", err, c.Stderr())
			}
			t.Logf("ended after %v", time.Since(begun))
			r := m.dodo("audit", "verify")
			if r.status != 0 {
				t.Errorf("audit verify: %d %s%s", r.status, r.stdout, r.stderr)
			}
		})
	}
}

// TestSurfacesOverStdio: each surface lists its golden tools, and a gateway does what the
// direct tool does.
func TestSurfacesOverStdio(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	for _, k := range []surface.Kind{surface.Compact, surface.Hybrid, surface.Full} {
		c := m.speak("legacy", dir, "--tools", string(k))
		if got := c.tools(); !slices.Equal(got, shown(k).Names()) {
			t.Errorf("%s: %v", k, got)
		}
		if k == surface.Full {
			continue
		}
		found := c.fine("dodo_discover", `"query":"write a file","limit":2`)
		if first := found.Data["matches"].([]any)[0].(map[string]any); first["operation"] != "write_file" || first["gateway"] != "dodo_write" {
			t.Errorf("%v", found.Data)
		}
		done := c.fine("dodo_write", fmt.Sprintf(`"operation":"write_file","args":{"path":"%s.txt","content":"x"}`, k))
		if done.Data["created"] != true {
			t.Errorf("%v", done.Data)
		}
		if e := c.call("dodo_read", `"operation":"write_file","args":{"path":"y","content":"x"}`); e.OK || e.Error.Code != "NOT_FOUND" {
			t.Errorf("%+v", e)
		}
		if e := c.call("dodo_write", `"operation":"write_file","args":{"path":".git/config","content":"x"}`); e.OK || e.Error.Code != "PATH_DENIED" {
			t.Errorf("%+v", e)
		}
	}
}

// TestApprovalOverStdio: in a workspace that is only inspected, a change waits for the
// owner's word on this very call, and is done once.
func TestApprovalOverStdio(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.ok(nil, "access-mode", "managed")
	c := m.speak("legacy", dir)
	const write = `"path":"new.txt","content":"x"`
	e := c.call("write_file", write)
	if e.OK || e.Error.Code != "APPROVAL_REQUIRED" || !e.Error.Retryable {
		t.Fatalf("%+v", e)
	}
	if _, err := os.Stat(filepath.Join(dir, "new.txt")); err == nil {
		t.Fatal("written without the owner's word")
	}
	id := e.Error.Detail["approvalId"].(string)
	if s := c.fine("approval_status", fmt.Sprintf(`"approvalId":%q`, id)); s.Data["status"] != "pending" || s.Data["tool"] != "write_file" {
		t.Errorf("%v", s.Data)
	}
	m.ok(nil, "approve", id)
	if e := c.call("write_file", `"path":"new.txt","content":"y"`); e.OK {
		t.Fatal("the approval was good for another content")
	}
	c.fine("write_file", write)
	c.fine("write_file", write) // the file has this content: there is nothing to ask
	if err := os.Remove(filepath.Join(dir, "new.txt")); err != nil {
		t.Fatal(err)
	}
	if e := c.call("write_file", write); e.OK || e.Error.Code != "APPROVAL_REQUIRED" {
		t.Fatal("the approval was used twice")
	}
	if s := c.fine("approval_status", fmt.Sprintf(`"approvalId":%q`, id)); s.Data["status"] != "consumed" {
		t.Errorf("%v", s.Data)
	}
}

// TestTextThatIsNoUnicode: nothing is found, written or named by what is not the caller's text.
func TestTextThatIsNoUnicode(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.Write(t, "work/f.txt", "a\uFFFDb\n")
	for _, c := range []*client{m.speak("legacy", dir), m.speak("modern", dir)} {
		for field, call := range map[string][2]string{
			"content":        {"write_file", `"path":"new.txt","content":"a\ud800"`},
			"path":           {"write_file", "\"path\":\"n\xff.txt\",\"content\":\"a\""},
			"edits[0].find":  {"edit_file", `"path":"f.txt","edits":[{"find":"\udc00","replace":"x"}]`},
			"files[0].path ": {"read_files", "\"files\":[{\"path\":\"f\xc3.txt\"}]"},
			"query":          {"search_code", `"query":"\uDBFF"`},
		} {
			e := c.call(call[0], call[1])
			if e.OK || e.Error.Code != "INVALID_INPUT" || !strings.Contains(e.Error.Message, "in "+field) || !strings.Contains(e.Error.Message, "not valid Unicode") {
				t.Errorf("%s: %+v", field, e.Error)
			}
		}
	}
	c := m.speak("legacy", dir, "--tools", "compact")
	if e := c.call("dodo_write", `"operation":"write_file","args":{"path":"new.txt","content":"\ud800"}`); e.OK || e.Error.Code != "INVALID_INPUT" || !strings.Contains(e.Error.Message, "in content") {
		t.Errorf("%+v", e.Error)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 3 || m.read("work/f.txt") != "a\uFFFDb\n" {
		t.Errorf("%v %v", list, err)
	}
}

// TestOtherProjects: reading another registered project, and making a whole call there.
func TestOtherProjects(t *testing.T) {
	m := newMachine(t)
	dir, other := m.workspace(), m.dir("other")
	m.Write(t, "other/o.txt", "needle\n")
	m.ok(nil, "project", "add", other, "--json")
	c := m.speak("legacy", dir)
	projects := c.fine("project_overview", "").Data["federation"].(map[string]any)["projects"].([]any)
	if len(projects) != 1 {
		t.Fatalf("%v", projects)
	}
	id := projects[0].(map[string]any)["projectId"].(string)
	found := c.fine("search_code", fmt.Sprintf(`"query":"needle","projectId":%q`, id))
	if found.Data["totalMatches"] != 1.0 {
		t.Errorf("%v", found.Data)
	}
	if here := c.fine("search_code", `"query":"needle"`); here.Data["totalMatches"] != 0.0 {
		t.Errorf("%v", here.Data)
	}
	there := c.raw("project_overview", fmt.Sprintf(`{"targetProjectId":%q}`, id))
	if !there.OK || there.Data["root"] != other || there.WorkspaceEpoch == "" {
		t.Fatalf("%+v", there)
	}
	write := fmt.Sprintf(`{"targetProjectId":%q,"workspaceId":%q,"workspaceEpoch":%q,"path":"w.txt","content":"w"}`, id, there.WorkspaceID, there.WorkspaceEpoch)
	if e := c.raw("write_file", write); !e.OK {
		t.Fatalf("%+v", e.Error)
	}
	if got, _ := os.ReadFile(filepath.Join(other, "w.txt")); string(got) != "w" {
		t.Errorf("%q", got)
	}
	if e := c.call("write_file", fmt.Sprintf(`"targetProjectId":%q,"path":"w2.txt","content":"w"`, id)); e.OK || e.Error.Code != "WORKSPACE_MISMATCH" {
		t.Errorf("the other workspace's context was not asked for: %+v", e)
	}
	for _, e := range []envelope{
		c.call("read_files", `"files":[{"path":"o.txt"}],"projectId":"prj_00000000"`),
		c.call("read_files", `"files":[{"path":"o.txt"}],"targetProjectId":"prj_00000000"`),
	} {
		if e.OK || e.Error.Code != "NOT_FOUND" || !strings.Contains(e.Error.Message, "no project is registered") {
			t.Errorf("%+v", e)
		}
	}
}

// TestInspector: an independent client connects in every era, finds nothing to say about
// the schemas, and gets an answer.
func TestInspector(t *testing.T) {
	mcptest.Inspector(t) // skips early when it is not installed
	m := newMachine(t)
	dir := m.workspace()
	for _, k := range []surface.Kind{surface.Full, surface.Compact} {
		server := append([]string{"env", "-i"}, append(m.Environ(), built.Path(t), "stdio", "--root", dir, "--tools", string(k))...)
		for _, era := range []string{"legacy", "modern", "auto"} {
			t.Run(string(k)+" "+era, func(t *testing.T) {
				out := mcptest.Inspect(t, server, "--protocol-era", era, "--method", "tools/list", "--strict", "--format", "json")
				var list struct {
					Result struct{ Tools []struct{ Name string } }
				}
				if err := json.Unmarshal([]byte(out), &list); err != nil {
					t.Fatalf("%v: %.2000s", err, out)
				}
				if len(list.Result.Tools) != len(shown(k).Names()) {
					t.Errorf("%d tools", len(list.Result.Tools))
				}
				// The one thing it has to say is a decision: a nullable member of an output.
				for _, rule := range regexp.MustCompile(`"rule":"[^"]*","severity":"[^"]*","schema":"[^"]*"`).FindAllString(out, -1) {
					if rule != `"rule":"type-union","severity":"warning","schema":"outputSchema"` {
						t.Errorf("the lint says %s", rule)
					}
				}
				out = mcptest.Inspect(t, server, "--protocol-era", era, "--method", "tools/call", "--tool-name", "project_overview", "--format", "json")
				if !strings.Contains(out, `"ok":true`) && !strings.Contains(out, `"ok": true`) {
					t.Errorf("%.2000s", out)
				}
			})
		}
	}
}

// TestHintsOnlyNarrow: a repository's .dodo.json leaves files out of listings and search
// unless they are asked for, makes nothing secret readable, and a file that is not
// understood is ignored whole and named.
func TestHintsOnlyNarrow(t *testing.T) {
	m := newMachine(t)
	dir := m.workspace()
	m.Write(t, "work/gen/g.txt", "needle\n")
	m.Write(t, "work/.env", "needle=1\n")
	m.Write(t, "work/.dodo.json", `{"name":"x","exclude":["gen/"]}`)
	c := m.speak("legacy", dir)
	if n := c.fine("search_code", `"query":"needle"`).Data["totalMatches"]; n != 0.0 { // gen/ is left out, .env is secret
		t.Errorf("%v matches", n)
	}
	if n := c.fine("glob_files", `"pattern":"*.txt"`).Data["count"]; n != 1.0 {
		t.Errorf("%v files", n)
	}
	if n := c.fine("glob_files", `"pattern":"*.txt","includeIgnored":true`).Data["count"]; n != 2.0 {
		t.Errorf("%v files with those left out", n)
	}
	c.fine("read_files", `"files":[{"path":"gen/g.txt"}]`)
	for _, wrong := range []string{`{"exclude":["gen/"],"trust":"trusted"}`, `{"exclude":["gen/","!.env"]}`, `{"exclude":["gen/","["]}`, `{"exclude":["gen/"]`} {
		m.Write(t, "work/.dodo.json", wrong)
		c = m.speak("legacy", dir)
		if n := c.fine("glob_files", `"pattern":"*.txt"`).Data["count"]; n != 2.0 {
			t.Errorf("%s was used: %v", wrong, n)
		}
		if note, _ := c.fine("project_overview", "").Data["projectConfigNote"].(string); !strings.HasPrefix(note, ".dodo.json is ignored: ") {
			t.Errorf("%s: note %q", wrong, note)
		}
	}
}
