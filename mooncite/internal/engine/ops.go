package engine

import (
	"context"
	_ "embed"
	"time"

	"localmcp/internal/op"
)

// Names of the tools.
const (
	ToolRecall  = "mooncite_recall"
	ToolInspect = "mooncite_inspect"
	ToolStatus  = "mooncite_status"
)

// Instructions tell a model when and how to use the tools.
//
//go:embed instructions.md
var Instructions string

//go:embed op_recall.md
var recallDoc string

//go:embed op_inspect.md
var inspectDoc string

//go:embed op_status.md
var statusDoc string

// Ops are the three tools.
func (e *Engine) Ops() []op.Op { return ops(e) }

// Catalogue gives the three tools without an engine, for those who only read what
// they say. They cannot be run.
func Catalogue() []op.Op { return ops(nil) }

// tellEvery is how often a caller that listens hears how far the reading of histories is.
const tellEvery = 20 * time.Millisecond

// tell reports to a caller that listens, until what it returns is called.
func (e *Engine) tell(c op.Call) (stop func()) {
	if c.Progress == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(tellEvery)
		defer t.Stop()
		for {
			select {
			case <-end:
				return
			case <-t.C:
				if j := e.current(); j != nil && j.running() {
					c.Report(float64(j.bytes.Load()), float64(j.total), "reading histories")
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}

func ops(e *Engine) []op.Op {
	read := func(name, title, doc string) op.Spec {
		return op.Spec{Name: name, Title: title, Doc: doc, ReadOnly: true, Idempotent: true}
	}
	return []op.Op{
		op.New(read(ToolRecall, "Recall past conversations", recallDoc),
			func(ctx context.Context, c op.Call, in RecallIn) (RecallOut, error) {
				defer e.tell(c)()
				return e.Recall(ctx, in)
			}),
		op.New(read(ToolInspect, "Inspect evidence", inspectDoc),
			func(ctx context.Context, c op.Call, in InspectIn) (InspectOut, error) {
				return e.Inspect(ctx, in)
			}),
		op.New(read(ToolStatus, "Mooncite status", statusDoc),
			func(ctx context.Context, c op.Call, in StatusIn) (StatusOut, error) {
				defer e.tell(c)()
				return e.Status(ctx)
			}),
	}
}
