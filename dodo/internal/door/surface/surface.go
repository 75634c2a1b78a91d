package surface

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/gate"
	"localmcp/internal/fault"
	"localmcp/internal/op"
)

// Kind is a surface's name.
type Kind string

// The surfaces.
const (
	Full    Kind = "full"
	Compact Kind = "compact"
	Hybrid  Kind = "hybrid"
)

// ParseKind reads a surface's name.
func ParseKind(word string) (Kind, bool) {
	k := Kind(word)
	return k, k == Full || k == Compact || k == Hybrid
}

// mostHybrid is the hard cap of the hybrid surface.
const mostHybrid = 49

// Road runs a call: the gate.
type Road interface {
	Run(context.Context, gate.Request) *contract.Reply
}

// Order puts operations in the catalogue's order. It panics on one the catalogue does not
// have, one that is in no gateway, or two of a name: mistakes of who builds.
func Order(ops []contract.Op) []contract.Op {
	place := map[string]int{}
	for i, name := range catalogue {
		place[name] = i
	}
	for i, o := range ops {
		if _, ok := place[o.Name]; !ok {
			panic("surface: " + o.Name + " is not in the catalogue")
		}
		if g := gatewayOf(o.Name); o.Gateway != g {
			panic("surface: " + o.Name + " belongs to the gateway " + g + ", not " + o.Gateway)
		}
		if slices.ContainsFunc(ops[:i], func(p contract.Op) bool { return p.Name == o.Name }) {
			panic("surface: two operations are called " + o.Name)
		}
	}
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b contract.Op) int { return place[a.Name] - place[b.Name] })
	return ops
}

// gatewayOf is the gateway of an operation; empty for project_overview.
func gatewayOf(name string) string {
	for _, g := range gateways {
		if slices.Contains(g.operations, name) {
			return g.name
		}
	}
	return ""
}

// Tools returns the tools of a surface over the operations that exist, which Order has put
// in order. Who calls is what each call says of it.
func Tools(k Kind, ops []contract.Op, road Road) op.Set {
	d := door{road}
	var tools []op.Op
	if k == Full {
		for _, o := range ops {
			tools = append(tools, d.direct(o))
		}
		return op.NewSet(tools...)
	}
	byName := map[string]contract.Op{}
	for _, o := range ops {
		byName[o.Name] = o
	}
	if o, ok := byName["project_overview"]; ok {
		tools = append(tools, d.direct(o))
	}
	tools = append(tools, d.direct(Discover(ops)))
	for _, g := range gateways {
		if inside := g.present(byName); len(inside) > 0 {
			tools = append(tools, d.gateway(g, inside))
		}
	}
	if k == Hybrid {
		for _, name := range hybrid {
			if o, ok := byName[name]; ok {
				tools = append(tools, d.direct(o))
			}
		}
		if len(tools) > mostHybrid {
			panic("surface: hybrid shows more tools than its cap")
		}
	}
	return op.NewSet(tools...)
}

// Count is how many tools a surface has over the operations that exist.
func Count(k Kind, ops []contract.Op) int {
	if k == Full {
		return len(ops)
	}
	byName := map[string]contract.Op{}
	for _, o := range ops {
		byName[o.Name] = o
	}
	n := 1 // dodo_discover
	if _, ok := byName["project_overview"]; ok {
		n++
	}
	for _, g := range gateways {
		if len(g.present(byName)) > 0 {
			n++
		}
	}
	if k == Hybrid {
		for _, name := range hybrid {
			if _, ok := byName[name]; ok {
				n++
			}
		}
	}
	return n
}

// present are a gateway's operations that exist, in order.
func (g gateway) present(byName map[string]contract.Op) []contract.Op {
	var inside []contract.Op
	for _, name := range g.operations {
		if o, ok := byName[name]; ok {
			inside = append(inside, o)
		}
	}
	return inside
}

// door makes tools.
type door struct{ road Road }

// direct is the tool of one operation.
func (d door) direct(o contract.Op) op.Op {
	spec := op.Spec{
		Name: o.Name, Title: o.Title, Doc: o.Doc,
		ReadOnly: o.ReadOnly, Destructive: o.Destructive, Idempotent: o.Idempotent, OpenWorld: o.OpenWorld,
	}
	describe := func() (in, out json.RawMessage) { return withContext(o), o.OutputSchema() }
	return op.Raw(spec, describe, func(ctx context.Context, c op.Call) (any, error) {
		r := gate.Request{Caller: c.Caller, Op: o.Name, Progress: c.Progress}
		r.Context, r.Args, r.Malformed = gate.Split(c.Args)
		return d.road.Run(ctx, r), nil
	})
}

// gateway is the tool of a gateway.
func (d door) gateway(g gateway, inside []contract.Op) op.Op {
	spec := op.Spec{Name: g.name, Title: g.title, ReadOnly: true}
	names := make([]string, len(inside))
	for i, o := range inside {
		names[i] = o.Name
		spec.ReadOnly = spec.ReadOnly && o.ReadOnly
		spec.Destructive = spec.Destructive || o.Destructive
		spec.OpenWorld = spec.OpenWorld || o.OpenWorld
	}
	spec.Doc = g.doc + " Operations: " + strings.Join(names, ", ") +
		". dodo_discover gives the arguments of each; they go into args."
	describe := func() (in, out json.RawMessage) { return gatewayInput(names), gatewayOutput() }
	return op.Raw(spec, describe, func(ctx context.Context, c op.Call) (any, error) {
		r := gate.Request{Caller: c.Caller, Via: g.name, Progress: c.Progress}
		g.read(&r, c.Args, names)
		return d.road.Run(ctx, r), nil
	})
}

// read takes a gateway's arguments apart.
func (g gateway) read(r *gate.Request, args json.RawMessage, names []string) {
	var rest json.RawMessage
	if r.Context, rest, r.Malformed = gate.Split(args); r.Malformed != nil {
		return
	}
	var in struct {
		Operation *string         `json:"operation"`
		Args      json.RawMessage `json:"args"`
	}
	r.Malformed = strict(rest, &in)
	if in.Operation != nil {
		r.Op = *in.Operation
	}
	switch {
	case r.Malformed != nil:
	case in.Operation == nil:
		r.Malformed = fault.New(contract.InvalidInput, "operation is missing").WithHint("%s", g.choices(names))
	case !slices.Contains(names, r.Op):
		r.Malformed = g.unknown(r.Op, names)
	default:
		if string(in.Args) != "null" {
			r.Args = in.Args
		}
		r.Malformed = gate.Nested(r.Args)
	}
}

func (g gateway) choices(names []string) string {
	return "operations of " + g.name + ": " + strings.Join(names, ", ")
}

// unknown says where an operation is that this gateway does not have.
func (g gateway) unknown(name string, names []string) *fault.Error {
	if len(name) <= 64 {
		if other := gatewayOf(name); other != "" && other != g.name {
			return fault.New(contract.NotFound, "%s is an operation of %s, not of %s", name, other, g.name).
				WithHint("call %s with the same operation and args, if it is among your tools", other)
		}
	}
	return fault.New(contract.NotFound, "%s has no such operation", g.name).WithHint("%s", g.choices(names))
}

// strict decodes an object that may have no other members.
func strict(object json.RawMessage, into any) error {
	if len(object) == 0 {
		return nil
	}
	if err := unmarshal(object, into); err != nil {
		return fault.Wrap(contract.InvalidInput, err, "a gateway takes workspaceId, workspaceEpoch, targetProjectId, operation (a text) and args (an object), and nothing else").
			WithHint("dodo_discover with operation shows how the call looks")
	}
	return nil
}

// schema is an object's schema in the form that package op writes.
type schema struct {
	Type                 string         `json:"type"`
	Description          string         `json:"description,omitempty"`
	Properties           jsontext.Value `json:"properties,omitempty"`
	Required             []string       `json:"required,omitempty"`
	AdditionalProperties *bool          `json:"additionalProperties,omitempty"`
}

// contextProperties are the schemas of the context's members.
const (
	targetProperty = `"targetProjectId":{"type":"string","description":"Id of another project to make the whole call in; project_overview lists them.","minLength":1,"maxLength":128}`
	bothProperties = `"workspaceId":{"type":"string","description":"From project_overview.","minLength":1,"maxLength":128},` +
		`"workspaceEpoch":{"type":"string","description":"From project_overview.","minLength":1,"maxLength":128},`
)

// withContext is the input schema of a direct tool.
func withContext(o contract.Op) json.RawMessage {
	var s schema
	if err := json.Unmarshal(o.InputSchema(), &s); err != nil {
		panic("surface: the schema of " + o.Name + ": " + err.Error())
	}
	own := strings.TrimSuffix(strings.TrimPrefix(string(s.Properties), "{"), "}")
	properties := "{"
	if o.Gateway != "" || o.Name == "dodo_discover" {
		properties += bothProperties
		s.Required = append([]string{"workspaceId", "workspaceEpoch"}, s.Required...)
	}
	if own != "" {
		properties += own + ","
	}
	s.Properties = jsontext.Value(properties + targetProperty + "}")
	return must(op.Encode(s))
}

func gatewayInput(names []string) json.RawMessage {
	list := must(op.Encode(names))
	no := false
	return must(op.Encode(schema{
		Type: "object",
		Properties: jsontext.Value("{" + bothProperties +
			`"operation":{"type":"string","description":"What to do.","enum":` + string(list) + `},` +
			`"args":{"type":"object","description":"The operation's own arguments."},` + targetProperty + "}"),
		Required:             []string{"workspaceId", "workspaceEpoch", "operation"},
		AdditionalProperties: &no,
	}))
}

// gatewayOutput is the envelope with data of any form.
func gatewayOutput() json.RawMessage {
	type none struct{}
	return op.New[none, contract.Envelope[map[string]any]](op.Spec{Name: "any", Title: "Any", Doc: "Any."}, nil).OutputSchema()
}

func must(b json.RawMessage, err error) json.RawMessage {
	if err != nil {
		panic("surface: " + err.Error())
	}
	return b
}
