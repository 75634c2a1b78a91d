package main

import (
	"context"
	"runtime/debug"

	"localmcp/internal/fault"
	"localmcp/internal/mcpserve"
	"localmcp/internal/op"
	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/install"
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
	if err := p.prepare(places); err != nil {
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

// prepare makes the state directory, or refuses one that cannot be used: another program's,
// one inside a history, one that an uninstall would remove or that would hold the
// installation.
func (p *program) prepare(places source.Places) error {
	if i, err := install.PlacesOf(p.env); err == nil && (below(places.StateDir, i.Root) || below(i.Root, places.StateDir)) {
		return fault.Wrap(evidence.CodeState, &privdir.At{Path: places.StateDir}, "the state directory and the directory that mooncite is installed in lie inside one another").
			WithHint("set MOONCITE_STATE_DIR to a directory of its own")
	}
	return engine.Prepare(places)
}

// ownState refuses a state directory that is there and is another program's.
func ownState(places source.Places) error {
	if !engine.Present(places) {
		return nil
	}
	return engine.Prepare(places)
}

// server shows an engine's tools over MCP, and those of learned memory when it is on:
// they ask memoryOn at each call. g watches the roots.
func server(e *engine.Engine, m *memory.Store, memoryOn func() error, g *guard) *mcpserve.Server {
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
		Artifacts:    mcpserve.Artifacts{Scheme: "mooncite-result", Kind: "mooncite_result_artifact", Basis: basis(g.places)},
		Whole:        []string{"mooncite-pi"},
		Stale:        g.stale,
	})
}

// limitMemory trades some memory for less collecting, and collects harder before the
// promise of small memory is broken.
func limitMemory() {
	debug.SetGCPercent(300)
	debug.SetMemoryLimit(56 << 20)
}
