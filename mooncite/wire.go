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

// open builds the engine in a process that is confined from then on. keep are
// descriptors that were inherited on purpose.
func (p *program) open(ctx context.Context, o engine.Options, keep ...int) (*engine.Engine, *guard, error) {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return nil, nil, err
	}
	if err := engine.Prepare(places); err != nil {
		return nil, nil, err
	}
	g, err := p.guard(places, true, keep...)
	if err != nil {
		return nil, nil, err
	}
	o.Prepared, o.Confinement = true, g.report()
	e, err := engine.Open(ctx, places, o)
	return e, g, err
}

// ownState refuses a state directory that is there and is another program's.
func ownState(places source.Places) error {
	if !engine.Present(places) {
		return nil
	}
	return engine.Prepare(places)
}

// server shows an engine's tools over MCP, and those of learned memory when it is on:
// they ask memoryOn at each call.
func server(e *engine.Engine, m *memory.Store, memoryOn func() error, stale func() bool) *mcpserve.Server {
	ops, instructions := e.Ops(), engine.Instructions
	if m != nil {
		ops, instructions = append(ops, m.Ops(memoryOn)...), instructions+"\n\n"+memory.Instructions
	}
	return mcpserve.New(mcpserve.Options{
		Name:         "mooncite",
		Title:        "Mooncite",
		Version:      version,
		Instructions: instructions,
		Set:          op.NewSet(ops...),
		Artifacts:    mcpserve.Artifacts{Scheme: "mooncite-result", Kind: "mooncite_result_artifact"},
		Whole:        []string{"mooncite-pi"},
		Stale:        stale,
	})
}

// limitMemory trades some memory for less collecting, and collects harder before the
// promise of small memory is broken.
func limitMemory() {
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(56 << 20)
}
