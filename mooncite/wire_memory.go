package main

import (
	"context"

	"localmcp/internal/fault"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/memory"
	"localmcp/mooncite/internal/source"
)

var _ memory.Evidence = (*engine.Engine)(nil)

// memory gives the store of learned memory when the owner switched it on, else nil, and
// lets the engine's status tell of it. A switch that cannot be read is off: evidence
// does not depend on it.
func (p *program) memory(e *engine.Engine) (*memory.Store, error) {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return nil, err
	}
	on, err := memory.ReadSetting(places.ConfigDir)
	if err != nil {
		f := fault.From(err)
		p.streams.Notef("mooncite: %s\n  %s", f.Error(), f.Hint)
	}
	if !on.Enabled {
		return nil, nil
	}
	m := memory.New(places.StateDir, version, e, nil)
	e.ReportMemory(func(ctx context.Context) *engine.LearnedMemory {
		if p.memoryOn() != nil {
			return nil // switched off since
		}
		st := engine.LearnedMemory(m.Status(ctx))
		return &st
	})
	return m, nil
}

// memoryOn gives a fault while the owner's switch is off, also when it was on before.
func (p *program) memoryOn() error {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return err
	}
	return memory.RequireOn(places.ConfigDir)
}
