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

// Ops are the four tools.
func (s *Store) Ops() []op.Op { return ops(s) }

// Catalogue gives the four tools without a store, for those who only read what they
// say. They cannot be run.
func Catalogue() []op.Op { return ops(nil) }

func ops(s *Store) []op.Op {
	return []op.Op{
		op.New(op.Spec{Name: ToolRecall, Title: "Recall learned memory", Doc: recallDoc, ReadOnly: true, Idempotent: true}, nil,
			func(ctx context.Context, _ op.Call, in RecallIn) (RecallOut, error) { return s.Recall(ctx, in) }),
		op.New(op.Spec{Name: ToolInspect, Title: "Inspect learned memory", Doc: inspectDoc, ReadOnly: true, Idempotent: true}, nil,
			func(ctx context.Context, _ op.Call, in InspectIn) (InspectOut, error) { return s.Inspect(ctx, in) }),
		op.New(op.Spec{Name: ToolWrite, Title: "Write learned memory", Doc: writeDoc},
			func(in WriteIn) []op.Effect { return []op.Effect{{Kind: op.Write, Target: "learned memory"}} },
			func(ctx context.Context, _ op.Call, in WriteIn) (WriteOut, error) { return s.Write(ctx, in) }),
		op.New(op.Spec{Name: ToolDelete, Title: "Delete learned memory", Doc: deleteDoc, Destructive: true},
			func(in DeleteIn) []op.Effect { return []op.Effect{{Kind: op.Write, Target: "learned memory"}} },
			func(ctx context.Context, _ op.Call, in DeleteIn) (DeleteOut, error) { return s.Delete(ctx, in) }),
	}
}
