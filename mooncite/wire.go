package main

import (
	"context"
	"runtime/debug"

	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

// version is set at build time.
var version = "dev"

// open builds the engine.
func (p *program) open(ctx context.Context, o engine.Options) (*engine.Engine, error) {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return nil, err
	}
	return engine.Open(ctx, places, o)
}

// server shows an engine's tools over MCP, and those of learned memory when it is on.
func server(e *engine.Engine, m *memory.Store) *mcpserve.Server {
	ops, instructions := e.Ops(), engine.Instructions
	if m != nil {
		ops, instructions = append(ops, m.Ops()...), instructions+"\n\n"+memory.Instructions
	}
	return mcpserve.New(mcpserve.Options{
		Name:         "mooncite",
		Title:        "Mooncite",
		Version:      version,
		Instructions: instructions,
		Set:          op.NewSet(ops...),
		Artifacts:    mcpserve.Artifacts{Scheme: "mooncite-result", Kind: "mooncite_result_artifact"},
		Whole:        []string{"mooncite-pi"},
	})
}

// limitMemory trades some memory for less collecting, and collects harder before the
// promise of small memory is broken.
func limitMemory() {
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(56 << 20)
}
