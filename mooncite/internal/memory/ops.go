package memory

import (
	"context"
	_ "embed"

	"localmcp/internal/op"
)

// Names of the tools.
const (
	ToolRecall  = "mooncite_memory_recall"
	ToolInspect = "mooncite_memory_inspect"
	ToolWrite   = "mooncite_memory_write"
	ToolDelete  = "mooncite_memory_delete"
)

// Instructions tell a model when and how to use the tools; they follow those of the
// evidence tools.
//
//go:embed instructions.md
var Instructions string

//go:embed op_recall.md
var recallDoc string

//go:embed op_inspect.md
var inspectDoc string

//go:embed op_write.md
var writeDoc string

//go:embed op_delete.md
var deleteDoc string

// Ops are the four tools. Each asks allowed before it does anything, at each call, and
// answers the fault that it gives; [RequireOn] is what a server passes.
func (s *Store) Ops(allowed func() error) []op.Op { return ops(s, allowed) }

// Catalogue gives the four tools without a store, for those who only read what they
// say. They cannot be run.
func Catalogue() []op.Op { return ops(nil, nil) }

// when runs a tool only where allowed gives no fault.
func when[In, Out any](allowed func() error, run func(context.Context, In) (Out, error)) func(context.Context, op.Call, In) (Out, error) {
	return func(ctx context.Context, _ op.Call, in In) (out Out, err error) {
		if err := allowed(); err != nil {
			return out, err
		}
		return run(ctx, in)
	}
}

func ops(s *Store, allowed func() error) []op.Op {
	return []op.Op{
		op.New(op.Spec{Name: ToolRecall, Title: "Recall learned memory", Doc: recallDoc, ReadOnly: true, Idempotent: true},
			when(allowed, s.Recall)),
		op.New(op.Spec{Name: ToolInspect, Title: "Inspect learned memory", Doc: inspectDoc, ReadOnly: true, Idempotent: true},
			when(allowed, s.Inspect)),
		op.New(op.Spec{Name: ToolWrite, Title: "Write learned memory", Doc: writeDoc},
			when(allowed, s.Write)),
		op.New(op.Spec{Name: ToolDelete, Title: "Delete learned memory", Doc: deleteDoc, Destructive: true},
			when(allowed, s.Delete)),
	}
}
