package op

import (
	"context"
	"fmt"
	"runtime/debug"

	"localmcp/internal/fault"
)

// Set is an ordered collection of operations. It is a [Runner] that decodes,
// checks and runs, and asks nobody.
type Set struct {
	ops    []Op
	byName map[string]int
}

var _ Runner = Set{}

// NewSet collects operations in the order given. It panics on a duplicate name.
func NewSet(ops ...Op) Set {
	s := Set{ops: append([]Op(nil), ops...), byName: make(map[string]int, len(ops))}
	for i, o := range s.ops {
		if o.bind == nil {
			panic("op: an operation was not made by New")
		}
		if _, dup := s.byName[o.spec.Name]; dup {
			panic("op: two operations are called " + o.spec.Name)
		}
		s.byName[o.spec.Name] = i
	}
	return s
}

// Ops returns the operations in order.
func (s Set) Ops() []Op { return append([]Op(nil), s.ops...) }

// Names returns the names in order.
func (s Set) Names() []string {
	names := make([]string, len(s.ops))
	for i, o := range s.ops {
		names[i] = o.spec.Name
	}
	return names
}

// Lookup returns the operation with a name.
func (s Set) Lookup(name string) (Op, bool) {
	i, ok := s.byName[name]
	if !ok {
		return Op{}, false
	}
	return s.ops[i], true
}

// Run decodes, checks and runs one call.
func (s Set) Run(ctx context.Context, c Call) (any, error) {
	o, ok := s.Lookup(c.Op)
	if !ok {
		return nil, fault.New(UnknownOperation, "there is no operation called %s", quoted(c.Op))
	}
	run, err := o.Bind(c)
	if err != nil {
		return nil, err
	}
	return run(ctx)
}

// Recover returns a Runner that turns a panic below it into a fault with the code
// [fault.Internal]; the value and the stack are its cause, for the log.
func Recover(r Runner) Runner { return recovering{r} }

type recovering struct{ next Runner }

func (r recovering) Run(ctx context.Context, c Call) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fault.From(fmt.Errorf("panic in %s: %v\n%s", c.Op, p, debug.Stack()))
		}
	}()
	return r.next.Run(ctx, c)
}
