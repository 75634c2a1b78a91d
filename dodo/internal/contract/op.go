package contract

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"localmcp/internal/op"
)

// Def says what an operation is, to callers and to the gate.
type Def struct {
	Name, Title string
	Doc         string // what it does and when to use it; read by models
	Scope       Scope  // what a caller must have
	Class       Class  // what it may do at most
	Gateway     string // the tool it is reached through in the small surfaces; empty only for project_overview

	// The hints. All four are shown, so each must be true as it stands.
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Call is what an operation learns of the call beside its arguments.
type Call struct {
	Principal Principal
	RequestID string
	// Since is when the call was reserved whose end an outcome is asked for; zero otherwise.
	// What came of an earlier use of the same key is at least a retention older.
	Since time.Time
	// Progress receives how far the work is; nil when nobody listens.
	Progress func(done, total float64, message string)
}

// Report tells the caller how far the work is, if the caller listens.
func (c Call) Report(done, total float64, message string) {
	if c.Progress != nil {
		c.Progress(done, total, message)
	}
}

// Answer is what an operation gives back.
type Answer[Out any] struct {
	Data       Out
	Warnings   []string
	Truncated  bool       // there is more than Data says
	NextCursor string     // where it goes on; empty when it does not
	Blocks     []op.Block // pictures and sounds beside the text
	Ref        string     // id of what came of it, for the audit; may be empty
}

// Result is an Answer whose type only the operation knows.
type Result = Answer[any]

// Act is an effect that was prepared and not done yet. Preparing reads and validates,
// changes nothing, and may find that nothing is to be done.
type Act[Out any] struct {
	// Done, when it is set, is the answer: there is no effect and nobody is asked.
	Done *Answer[Out]
	// Summary is one line for the owner: what will be done, without text from outside.
	Summary string
	// Preview is what the owner may look at before an answer, such as a diff; may be nil.
	Preview any
	// NoTurn says that it changes nothing of the workspace by itself, and need not wait until
	// others are done with it: what steers something that runs must reach it.
	NoTurn bool
	// Run does it. It must hold its own conditions once more: time has passed, and
	// others may have changed what was prepared for.
	Run func(ctx context.Context) (Answer[Out], error)
	// Follow, when it is set, goes on after Run, while other calls may act: what waits for
	// something that was started waits here. It gets Run's answer and gives the caller's, also
	// when nobody waits for that any more: a failure would say that nothing came of Run. A call
	// with the same idempotency key gets Run's answer from then on, and Follow's when that is
	// there: so does one after a crash, and after a failure of Follow. Run's answer must be one
	// that its caller can go on from, such as the id of a job that runs.
	Follow func(ctx context.Context, a Answer[Out]) (Answer[Out], error)
}

// Prepared is an Act whose type only the operation knows.
type Prepared = Act[any]

// Bound is a call whose arguments were decoded and found valid.
type Bound struct {
	// Key is the argument idempotencyKey; empty when there is none.
	Key string
	// Prepare reads, validates and says what is to be done.
	Prepare func(ctx context.Context, c Call) (Prepared, error)
	// Outcome tells how an earlier call with these arguments ended when nobody noted it; nil
	// where an operation cannot tell.
	Outcome func(ctx context.Context, c Call) (Outcome[any], error)
}

// Outcome is how a call ended, as its effect itself tells.
type Outcome[Out any] struct {
	Known bool
	// Done is what it answered; nil when nothing of it is in effect.
	Done *Out
}

// Op is an operation of dodo: what the gate runs and the surfaces show.
type Op struct {
	Def
	Proposes bool // it was made by [Propose]

	args op.Op
	bind func(json.RawMessage) (Bound, error)
}

// Read makes an operation that has no effect on files and starts nothing: class read,
// plan or job-control. The gate asks nobody before it.
func Read[In, Out any](d Def, handler func(context.Context, Call, In) (Answer[Out], error)) Op {
	if d.Class != ClassRead && d.Class != ClassPlan && d.Class != ClassJobControl {
		panic("contract: " + d.Name + " acts; make it with Do")
	}
	return answering(d, handler)
}

// answering is an operation without an act.
func answering[In, Out any](d Def, handler func(context.Context, Call, In) (Answer[Out], error)) Op {
	return build(d, func(ctx context.Context, c Call, in In) (Act[Out], error) {
		a, err := handler(ctx, c, in)
		if err != nil {
			return Act[Out]{}, err
		}
		return Act[Out]{Done: &a}, nil
	}, nil)
}

// Do makes an operation of class mutate-files or exec. prepare must change nothing; only
// the gate calls what it returns, after the owner's rules allowed it.
func Do[In, Out any](d Def, prepare func(context.Context, Call, In) (Act[Out], error)) Op {
	if d.Class != ClassMutate && d.Class != ClassExec {
		panic("contract: " + d.Name + " does not act; make it with Read")
	}
	return build(d, prepare, nil)
}

// Propose makes an operation of class mutate-files or exec that does nothing of the kind
// itself: it writes down what is to be done later, and only the owner's word on that very
// proposal, given elsewhere, lets it happen. So the gate asks nobody before it.
func Propose[In, Out any](d Def, handler func(context.Context, Call, In) (Answer[Out], error)) Op {
	if d.Class != ClassMutate && d.Class != ClassExec {
		panic("contract: " + d.Name + " proposes no act; make it with Read")
	}
	o := answering(d, handler)
	o.Proposes = true
	return o
}

// DoOnce is Do for an operation with an idempotency key whose effect is written down: outcome
// reads there how a call ended whose process died before it answered.
func DoOnce[In, Out any](d Def, prepare func(context.Context, Call, In) (Act[Out], error), outcome func(context.Context, Call, In) (Outcome[Out], error)) Op {
	if d.Class != ClassMutate && d.Class != ClassExec || keyOf(reflect.TypeFor[In]()) == nil {
		panic("contract: " + d.Name + " does not act, or has no key")
	}
	return build(d, prepare, outcome)
}

func build[In, Out any](d Def, prepare func(context.Context, Call, In) (Act[Out], error), outcome func(context.Context, Call, In) (Outcome[Out], error)) Op {
	type raw struct{ in In }
	key := keyOf(reflect.TypeFor[In]())
	shown := op.Later[In, Envelope[Out]](op.Spec{
		Name: d.Name, Title: d.Title, Doc: d.Doc,
		ReadOnly: d.ReadOnly, Destructive: d.Destructive, Idempotent: d.Idempotent, OpenWorld: d.OpenWorld,
	}, nil)
	return Op{Def: d, args: shown, bind: func(args json.RawMessage) (Bound, error) {
		var v raw
		if err := shown.Decode(args, &v.in); err != nil {
			return Bound{}, err
		}
		b := Bound{Prepare: func(ctx context.Context, c Call) (Prepared, error) {
			act, err := prepare(ctx, c, v.in)
			if err != nil {
				return Prepared{}, err
			}
			return erase(act), nil
		}}
		if outcome != nil {
			b.Outcome = func(ctx context.Context, c Call) (Outcome[any], error) {
				o, err := outcome(ctx, c, v.in)
				if err != nil || o.Done == nil {
					return Outcome[any]{Known: o.Known}, err
				}
				done := any(*o.Done)
				return Outcome[any]{Known: true, Done: &done}, nil
			}
		}
		if key != nil {
			b.Key = reflect.ValueOf(v.in).FieldByIndex(key).String()
		}
		return b, nil
	}}
}

// keyOf finds the argument idempotencyKey.
func keyOf(t reflect.Type) []int {
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == "idempotencyKey" {
			return t.Field(i).Index
		}
	}
	return nil
}

func erase[Out any](a Act[Out]) Prepared {
	p := Prepared{Summary: a.Summary, Preview: a.Preview, NoTurn: a.NoTurn}
	if a.Done != nil {
		r := eraseAnswer(*a.Done)
		p.Done = &r
	}
	if a.Run != nil {
		p.Run = func(ctx context.Context) (Result, error) {
			out, err := a.Run(ctx)
			if err != nil {
				return Result{}, err
			}
			return eraseAnswer(out), nil
		}
	}
	if a.Follow != nil {
		p.Follow = func(ctx context.Context, r Result) (Result, error) {
			out, err := a.Follow(ctx, Answer[Out]{
				Data: r.Data.(Out), Warnings: r.Warnings, Truncated: r.Truncated, NextCursor: r.NextCursor, Blocks: r.Blocks, Ref: r.Ref,
			})
			if err != nil {
				return Result{}, err
			}
			return eraseAnswer(out), nil
		}
	}
	return p
}

func eraseAnswer[Out any](a Answer[Out]) Result {
	return Result{Data: a.Data, Warnings: a.Warnings, Truncated: a.Truncated, NextCursor: a.NextCursor, Blocks: a.Blocks, Ref: a.Ref}
}

// Bind decodes and checks arguments, without the workspace context around them.
func (o Op) Bind(args json.RawMessage) (Bound, error) { return o.bind(args) }

// InputSchema is the JSON Schema of the arguments alone.
func (o Op) InputSchema() json.RawMessage { return o.args.InputSchema() }

// OutputSchema is the JSON Schema of the envelope with the operation's data.
func (o Op) OutputSchema() json.RawMessage { return o.args.OutputSchema() }

// Fits reports how an envelope's JSON differs from what the operation says it answers.
func (o Op) Fits(envelope json.RawMessage) error { return o.args.Fits(envelope) }
