package surface_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/surface"
	"localmcp/dodo/internal/gate"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

type in struct {
	Text         string `json:"text" doc:"Words." maxLength:"10"`
	ExpectedHash string `json:"expectedHash,omitempty" maxLength:"128"`
}

type out struct {
	Text string `json:"text"`
}

// build makes every operation of the published catalogue, with nothing behind it.
func build(names []string) []contract.Op {
	var ops []contract.Op
	for _, name := range names {
		d := contract.Def{
			Name: name, Title: "Title of " + name, Doc: "Does " + strings.ReplaceAll(name, "_", " ") + ".", Gateway: surface.GatewayOf(name),
			Scope: contract.ScopeRead, Class: contract.ClassRead, ReadOnly: true,
		}
		if name == "write_file" {
			d.ReadOnly, d.Destructive, d.OpenWorld = false, true, true
		}
		ops = append(ops, contract.Read(d, func(context.Context, contract.Call, in) (contract.Answer[out], error) {
			return contract.Answer[out]{Data: out{name}}, nil
		}))
	}
	return surface.Order(ops)
}

// road records what reaches it.
type road struct{ got []gate.Request }

func (r *road) Run(_ context.Context, q gate.Request) *contract.Reply {
	r.got = append(r.got, q)
	if q.Malformed != nil {
		return contract.Failure("", "", fault.From(q.Malformed))
	}
	return contract.Success("w", "e", contract.Result{Data: out{q.Op}})
}

// TestCounts pins the surfaces of the whole catalogue: 125 operations, 19 tools, 49 tools.
func TestCounts(t *testing.T) {
	ops := build(surface.Catalogue())
	for kind, n := range map[surface.Kind]int{surface.Full: 125, surface.Compact: 19, surface.Hybrid: 49} {
		names := surface.Tools(kind, ops, &road{}).Names()
		if len(names) != n || surface.Count(kind, ops) != n || surface.Count(kind, ops[:40]) != len(surface.Tools(kind, ops[:40], &road{}).Names()) {
			t.Errorf("%s: %d tools, counted %d, want %d", kind, len(names), surface.Count(kind, ops), n)
		}
		if names[0] != "project_overview" {
			t.Errorf("%s begins with %s", kind, names[0])
		}
	}
	if names := surface.Tools(surface.Full, ops, &road{}).Names(); !slices.Equal(names, surface.Catalogue()) {
		t.Error("the full surface is not in the catalogue's order")
	}
	hybrid, compact := surface.Tools(surface.Hybrid, ops, &road{}).Names(), surface.Tools(surface.Compact, ops, &road{}).Names()
	if !slices.Equal(hybrid[:19], compact) || compact[1] != "dodo_discover" || compact[18] != "dodo_web" {
		t.Errorf("hybrid %v", hybrid)
	}
}

// TestEveryOperationHasOneGateway: all but project_overview, and no gateway leads to another.
func TestEveryOperationHasOneGateway(t *testing.T) {
	count := map[string]int{}
	for _, inside := range surface.Gateways() {
		for _, name := range inside {
			count[name]++
			if strings.HasPrefix(name, "dodo_") || name == "project_overview" {
				t.Errorf("a gateway leads to %s", name)
			}
		}
	}
	for _, name := range surface.Catalogue() {
		if want := 1; name == "project_overview" && count[name] != 0 || name != "project_overview" && count[name] != want {
			t.Errorf("%s is in %d gateways", name, count[name])
		}
	}
	if len(count) != 124 {
		t.Errorf("%d operations behind gateways", len(count))
	}
}

// TestOnlyWhatExists shows that a surface lists operations that exist, and no gateway
// without any.
func TestOnlyWhatExists(t *testing.T) {
	ops := build([]string{"write_file", "list_files", "project_overview"})
	want := map[surface.Kind]string{
		surface.Full:    "project_overview list_files write_file",
		surface.Compact: "project_overview dodo_discover dodo_read dodo_write",
		surface.Hybrid:  "project_overview dodo_discover dodo_read dodo_write list_files write_file",
	}
	for kind, names := range want {
		if got := strings.Join(surface.Tools(kind, ops, &road{}).Names(), " "); got != names {
			t.Errorf("%s: %s, want %s", kind, got, names)
		}
	}
	w, _ := surface.Tools(surface.Compact, ops, &road{}).Lookup("dodo_write")
	if s := w.Spec(); s.ReadOnly || !s.Destructive || !s.OpenWorld || s.Idempotent {
		t.Errorf("hints of dodo_write: %+v", s)
	}
	if !strings.Contains(string(w.InputSchema()), `"enum":["write_file"]`) {
		t.Errorf("%s", w.InputSchema())
	}
}

// TestMistakesOfWhoBuilds shows what Order does not let pass.
func TestMistakesOfWhoBuilds(t *testing.T) {
	bad := func(what string, ops ...contract.Op) {
		t.Helper()
		defer func() {
			if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), what) {
				t.Errorf("%v, want %q", p, what)
			}
		}()
		surface.Order(ops)
	}
	one := build([]string{"list_files"})[0]
	bad("two operations", one, one)
	stray := one
	stray.Name = "list_all"
	bad("not in the catalogue", stray)
	moved := one
	moved.Gateway = "dodo_write"
	bad("belongs to the gateway dodo_read", moved)
}

// TestContextAroundArguments pins the input of direct tools and of gateways.
func TestContextAroundArguments(t *testing.T) {
	ops := build(surface.Catalogue())
	schema := func(kind surface.Kind, name string) (s struct {
		Type       string
		Properties map[string]struct{ Type any }
		Required   []string
		More       *bool `json:"additionalProperties"`
	}) {
		o, ok := surface.Tools(kind, ops, &road{}).Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		if err := json.Unmarshal(o.InputSchema(), &s); err != nil {
			t.Fatalf("%s: %v", o.InputSchema(), err)
		}
		if s.Type != "object" || s.More == nil || *s.More {
			t.Errorf("%s is open: %s", name, o.InputSchema())
		}
		return s
	}
	if s := schema(surface.Full, "list_files"); len(s.Properties) != 5 || !slices.Equal(s.Required, []string{"workspaceId", "workspaceEpoch", "text"}) {
		t.Errorf("%+v", s)
	}
	if s := schema(surface.Full, "project_overview"); len(s.Properties) != 3 || !slices.Equal(s.Required, []string{"text"}) {
		t.Errorf("%+v", s)
	}
	if s := schema(surface.Compact, "dodo_discover"); len(s.Properties) != 8 || !slices.Equal(s.Required, []string{"workspaceId", "workspaceEpoch"}) {
		t.Errorf("%+v", s)
	}
	if s := schema(surface.Compact, "dodo_read"); len(s.Properties) != 5 || !slices.Equal(s.Required, []string{"workspaceId", "workspaceEpoch", "operation"}) {
		t.Errorf("%+v", s)
	}
}

// TestOneRoad shows that a direct call and a gateway's call of the same thing are the same
// request, and that a gateway takes nothing but its own operations and arguments.
func TestOneRoad(t *testing.T) {
	ops := build(surface.Catalogue())
	r := &road{}
	call := func(kind surface.Kind, tool, args string) (*contract.Reply, gate.Request) {
		t.Helper()
		out, err := surface.Tools(kind, ops, r).Run(context.Background(), op.Call{Caller: "someone", Op: tool, Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return out.(*contract.Reply), r.got[len(r.got)-1]
	}
	reply, direct := call(surface.Full, "list_files", `{"workspaceId":"w","text":"x","workspaceEpoch":"e"}`)
	if !reply.OK || direct.Caller != "someone" || direct.Op != "list_files" || string(direct.Args) != `{"text":"x"}` {
		t.Errorf("%+v", direct)
	}
	reply, through := call(surface.Hybrid, "dodo_read", `{"workspaceId":"w","workspaceEpoch":"e","operation":"list_files","args":{"text":"x"}}`)
	if !reply.OK || through.Via != "dodo_read" || through.Op != direct.Op || string(through.Args) != string(direct.Args) ||
		*through.Context.WorkspaceID != *direct.Context.WorkspaceID || through.Caller != direct.Caller {
		t.Errorf("%+v", through)
	}
	if reply, q := call(surface.Compact, "dodo_read", `{"workspaceId":"w","workspaceEpoch":"e","operation":"list_files"}`); !reply.OK || len(q.Args) != 0 {
		t.Errorf("without args: %+v", q)
	}
	for args, code := range map[string]fault.Code{
		`{"operation":"write_file","args":{}}`:       contract.NotFound,
		`{"operation":"dodo_write","args":{}}`:       contract.NotFound,
		`{"operation":"project_overview","args":{}}`: contract.NotFound,
		`{"operation":"owner.approve","args":{}}`:    contract.NotFound,
		`{"args":{}}`:                                                   contract.InvalidInput,
		`{"operation":7}`:                                               contract.InvalidInput,
		`{"operation":"list_files","args":[]}`:                          contract.InvalidInput,
		`{"operation":"list_files","args":"x"}`:                         contract.InvalidInput,
		`{"operation":"list_files","args":{"workspaceId":"w"}}`:         contract.InvalidInput,
		`{"operation":"list_files","args":{"targetProjectId":"p"}}`:     contract.InvalidInput,
		`{"operation":"list_files","args":{},"path":"x"}`:               contract.InvalidInput,
		`{"operation":"list_files","operation":"read_files","args":{}}`: contract.InvalidInput,
		`7`: contract.InvalidInput,
	} {
		reply, q := call(surface.Compact, "dodo_read", args)
		if reply.OK || reply.Error.Code != code || q.Via != "dodo_read" {
			t.Errorf("%s: %+v", args, reply.Error)
		}
	}
	reply, _ = call(surface.Compact, "dodo_read", `{"operation":"write_file","args":{}}`)
	if !strings.Contains(reply.Error.Recovery, "dodo_write") {
		t.Errorf("no word of where write_file is: %+v", reply.Error)
	}
}

// discover runs dodo_discover.
func discover(t *testing.T, args string) (d struct {
	Matches      []struct{ Operation, Description string }
	TotalMatches int
	InputSchema  json.RawMessage
	SchemaHash   string
	Gateway      string
	Notes        []string
}, a contract.Result, err error) {
	t.Helper()
	b, err := surface.Discover(build(surface.Catalogue())).Bind(json.RawMessage(args))
	if err != nil {
		return d, a, err
	}
	p, err := b.Prepare(context.Background(), contract.Call{})
	if err != nil {
		return d, a, err
	}
	raw, err := op.Encode(p.Done.Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d, *p.Done, nil
}

// TestDiscover shows ranking, domains, paging and one operation's schema.
func TestDiscover(t *testing.T) {
	d, a, err := discover(t, `{"query":"Write a FILE!","limit":3}`)
	if err != nil || d.Matches[0].Operation != "write_file" || len(d.Matches) != 3 || !a.Truncated {
		t.Fatalf("%+v %v", d, err)
	}
	all := 0
	for cursor := ""; ; {
		d, a, err := discover(t, `{"domain":"media","cursor":"`+cursor+`"}`)
		if err != nil || d.TotalMatches != 18 {
			t.Fatalf("%+v %v", d, err)
		}
		all += len(d.Matches)
		if cursor = a.NextCursor; cursor == "" {
			break
		}
	}
	if all != 18 {
		t.Errorf("%d of 18 by paging", all)
	}
	if d, _, err = discover(t, `{"query":"? a"}`); err != nil || d.TotalMatches != 124 || d.Matches[0].Operation != "list_files" {
		t.Errorf("without a word that says something: %+v %v", d, err)
	}
	d, _, err = discover(t, `{"operation":"edit_file"}`)
	if err != nil || d.Gateway != "dodo_write" || !strings.HasPrefix(d.SchemaHash, "sha256:") || !strings.Contains(strings.Join(d.Notes, " "), "expectedHash") {
		t.Fatalf("%+v %v", d, err)
	}
	if strings.Contains(string(d.InputSchema), "workspaceId") {
		t.Error("the context is among the arguments")
	}
	for args, code := range map[string]fault.Code{
		`{"operation":"project_overview"}`: contract.NotFound, `{"operation":"x"}`: contract.NotFound,
		`{"cursor":"c1234567"}`: contract.InvalidInput, `{"cursor":"7"}`: contract.InvalidInput, `{"cursor":"c"}`: contract.InvalidInput, `{"cursor":"c-1"}`: contract.InvalidInput,
	} {
		if _, _, err := discover(t, args); fault.From(err).Code != code {
			t.Errorf("%s: %v", args, err)
		}
	}
}
