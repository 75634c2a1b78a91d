package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"localmcp/internal/fault"
)

// The codes this package gives to refused calls.
const (
	// InvalidArgument means the arguments do not fit the input schema.
	InvalidArgument fault.Code = "invalid_argument"
	// UnknownOperation means no operation has the name called.
	UnknownOperation fault.Code = "unknown_operation"
)

// Spec says what an operation is to those who choose and call it.
type Spec struct {
	Name  string // lower snake case, at most 40 characters
	Title string // a short name for people
	Doc   string // what it does and when to use it; read by models

	// The hints. All four are always shown, so each must be true as it stands.
	ReadOnly    bool // it changes nothing
	Destructive bool // it may remove or overwrite something
	Idempotent  bool // the same call again has no further effect
	OpenWorld   bool // it reaches things beyond the machine
}

// Call is one request to run an operation.
type Call struct {
	Op     string          // the operation's name
	Caller string          // who calls, as the door established it
	Args   json.RawMessage // a JSON object; empty means no arguments
	// Progress receives how far the work is; nil when nobody listens.
	// A total of 0 means unknown. It may be called from any goroutine.
	Progress func(done, total float64, message string)
}

// Report tells the caller how far the work is, if the caller listens.
func (c Call) Report(done, total float64, message string) {
	if c.Progress != nil {
		c.Progress(done, total, message)
	}
}

// ErrWithdrawn is the cause of the end of a call's context when its caller said that it no longer
// wants the call. A context that ends for another cause does not say that: the connection may be
// gone, or the program be ending.
var ErrWithdrawn = errors.New("the caller took the call back")

// ErrEnding is the cause of the end of a call's context when the program ends: what the call
// answers soon still reaches its caller.
var ErrEnding = errors.New("the program is ending")

// Runner runs calls. A gate, a [Set] and a recovering wrapper are Runners.
type Runner interface {
	Run(context.Context, Call) (any, error)
}

// Op is an operation. Its zero value is not usable; [New] and its kin make one.
type Op struct {
	spec    Spec
	schemas func() schemas
	bind    func(Call) (func(context.Context) (any, error), error)

	decode func(args json.RawMessage, into any) error
	fits   func() (*jsonschema.Resolved, error)
}

// schemas are an operation's two, as text.
type schemas struct{ in, out json.RawMessage }

// plainName reports whether a name is made of a-z, 0-9 and _ only. It is no regular
// expression because those cost start-up time.
func plainName(name string, most int) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= most
}

// New makes an operation. In must be a struct whose fields fit the portable subset
// (see the tags in shape.go), Out a struct. New panics on a name, type or tag that cannot be shown to every client.
func New[In, Out any](spec Spec, handler func(context.Context, Call, In) (Out, error)) Op {
	o := Later(spec, handler)
	o.schemas()
	return o
}

// Later is New for programs with many operations: the types are looked at when they are
// first needed, and a bad one panics only then. Who uses it has a test that needs all.
func Later[In, Out any](spec Spec, handler func(context.Context, Call, In) (Out, error)) Op {
	if !plainName(spec.Name, 40) || spec.Name[0] < 'a' {
		panic("op: name " + spec.Name + " is not lower snake case of at most 40 characters")
	}
	if spec.Title == "" || spec.Doc == "" {
		panic("op: " + spec.Name + " needs a title and a doc")
	}
	if spec.ReadOnly && spec.Destructive {
		panic("op: " + spec.Name + " cannot be both read-only and destructive")
	}
	in := sync.OnceValue(func() *shape { return inputShape(spec.Name, reflect.TypeFor[In]()) })
	o := Op{
		spec: spec,
		schemas: sync.OnceValue(func() schemas {
			return schemas{in().schema(), outputShape(spec.Name, reflect.TypeFor[Out]()).schema()}
		}),
		decode: func(args json.RawMessage, into any) error {
			return decode(args, in(), reflect.ValueOf(into).Elem())
		},
		bind: func(c Call) (func(context.Context) (any, error), error) {
			var v In
			if err := decode(c.Args, in(), reflect.ValueOf(&v).Elem()); err != nil {
				return nil, err
			}
			return func(ctx context.Context) (any, error) {
				out, err := handler(ctx, c, v)
				if err != nil {
					return nil, err
				}
				return out, nil
			}, nil
		},
	}
	o.fits = compiled(o.schemas)
	return o
}

// Raw makes an operation whose schemas are given, when they are first needed, and whose
// arguments reach the handler as they came, a JSON object or nothing. What the input schema
// says is for the handler to hold.
func Raw(spec Spec, describe func() (input, output json.RawMessage), handler func(context.Context, Call) (any, error)) Op {
	if !plainName(spec.Name, 40) || spec.Title == "" || spec.Doc == "" {
		panic("op: " + spec.Name + " needs a plain name, a title and a doc")
	}
	texts := sync.OnceValue(func() schemas {
		in, out := describe()
		return schemas{in, out}
	})
	return Op{spec: spec, schemas: texts, fits: compiled(texts), bind: func(c Call) (func(context.Context) (any, error), error) {
		return func(ctx context.Context) (any, error) { return handler(ctx, c) }, nil
	}}
}

// Decode reads arguments into the operation's own input type, which into must point to,
// and checks them as [Op.Bind] does.
func (o Op) Decode(args json.RawMessage, into any) error { return o.decode(args, into) }

// Fits reports how an answer's JSON, as [Encode] writes it, differs from what the output
// schema says. What the Go types cannot get wrong (names, kinds) is held all the same.
func (o Op) Fits(answer json.RawMessage) error {
	resolved, err := o.fits()
	if err != nil {
		return fmt.Errorf("the output schema of %s: %w", o.spec.Name, err)
	}
	var v any
	if err := jsonv2.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("an answer of %s: %w", o.spec.Name, err)
	}
	if err := resolved.Validate(v); err != nil {
		return fmt.Errorf("an answer of %s: %w", o.spec.Name, err)
	}
	return nil
}

// compiled makes an output schema ready for checking, at its first use.
func compiled(texts func() schemas) func() (*jsonschema.Resolved, error) {
	return sync.OnceValues(func() (*jsonschema.Resolved, error) {
		var s jsonschema.Schema
		if err := json.Unmarshal(texts().out, &s); err != nil {
			return nil, err
		}
		return s.Resolve(nil)
	})
}

// Spec returns what the operation is.
func (o Op) Spec() Spec { return o.spec }

// InputSchema returns the JSON Schema of the arguments. It must not be changed.
func (o Op) InputSchema() json.RawMessage { return o.schemas().in }

// OutputSchema returns the JSON Schema of the answer. It must not be changed.
func (o Op) OutputSchema() json.RawMessage { return o.schemas().out }

// Bind decodes and checks the arguments of a call, without doing anything yet: run does it.
func (o Op) Bind(c Call) (run func(context.Context) (any, error), err error) { return o.bind(c) }
