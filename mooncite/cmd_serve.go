package main

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"localmcp/internal/cli"
	"localmcp/internal/confine"
	"localmcp/internal/mcpserve"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/source"
)

func (p *program) serveCommand() *cobra.Command {
	var worker bool // hidden: the supervisor sets it
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools to an AI client over MCP on standard input and output",
		Long: "Serve speaks MCP on standard input and output until the input ends. Clients start it; several\n" +
			"may run at once. The first start reads the histories in the background.\n\n" +
			"Histories are read by a second process, which can open no network connection, run no program,\n" +
			"and read and write nothing but what it needs. It tries that before it opens a history.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if worker || unconfined {
				return p.work(c.Context(), worker)
			}
			return p.supervise(c.Context())
		},
	}
	f := c.Flags()
	f.BoolVar(&p.strict, "strict", false, "do not serve where the kernel's Landlock is old or missing")
	f.BoolVar(&worker, "worker", false, "")
	if err := f.MarkHidden("worker"); err != nil {
		panic(err) // the flag is there
	}
	return c
}

// supervise starts workers. This process opens no history, and runs nothing but itself.
func (p *program) supervise(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	ctx, unwatch := mcpserve.UntilOrphaned(ctx)
	defer unwatch()
	places, err := source.PlacesOf(p.env)
	if err != nil {
		return err
	}
	if err := p.prepare(places); err != nil {
		return err
	}
	if _, err := confine.Self(confine.Policy{Supervisor: true, Write: []string{places.StateDir}}); err != nil {
		return err
	}
	args := []string{"mooncite", "serve", "--worker"}
	if p.strict {
		args = append(args, "--strict")
	}
	if p.streams.Verbose {
		args = append(args, "--verbose")
	}
	status, err := confine.Supervise(ctx, args)
	if err != nil || status == 0 {
		return err
	}
	return cli.Status(status)
}

// work serves one client, until the input ends or the roots have changed; then another
// worker goes on.
func (p *program) work(ctx context.Context, supervised bool) error {
	limitMemory()
	var letter *confine.Letter
	var state []byte
	if supervised {
		var err error
		if letter, state, err = confine.Inherit(); err != nil {
			return err
		}
	}
	e, g, err := p.open(ctx, engine.Options{Background: true}, letter.Descriptors()...)
	if err != nil {
		return err
	}
	defer e.Close()
	m, err := p.memory(e)
	if err != nil {
		return err
	}
	if m != nil {
		defer m.Close()
	}
	next, err := server(e, m, p.memoryOn, g).ResumeStdio(ctx, state)
	if err != nil || next == nil {
		return err
	}
	if err := letter.Leave(next); err != nil {
		return err
	}
	return cli.Status(confine.Again)
}
