package main

import (
	"context"
	"os"
	"time"

	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/install"
	"localmcp/mooncite/internal/source"
)

// installer is what install, disable and uninstall work with. It runs client programs, so
// it is used before, and never in, a process that reads histories.
func (p *program) installer() (*install.Installer, error) {
	return install.New(install.Options{
		Env:     p.env,
		Version: version,
		// What runs, also when the file has another name by now.
		Program: func() ([]byte, error) { return os.ReadFile("/proc/self/exe") },
		Progress: func(step string) {
			if p.streams.ErrTerminal || p.streams.Verbose {
				p.streams.Notef("%s", step)
			}
		},
	})
}

// registrations are what the clients answered, as status keeps it.
func registrations(found []install.Finding) engine.Registrations {
	var r engine.Registrations
	for _, f := range found {
		switch f.Client {
		case "pi":
			r.Pi = string(f.State)
		case "omp":
			r.OMP = string(f.State)
		case "codex":
			r.Codex = string(f.State)
		case "claudeCode":
			r.ClaudeCode = string(f.State)
		}
	}
	return r
}

// probe asks the clients and keeps the answers for every status to come.
func (p *program) probe(ctx context.Context) error {
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return err
	}
	i, err := p.installer()
	if err != nil {
		return err
	}
	if err := p.prepare(places); err != nil { // before any client is started
		return err
	}
	found := i.Probe(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	return engine.SaveRegistrations(places, registrations(found), time.Now())
}
