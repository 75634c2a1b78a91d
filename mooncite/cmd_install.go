package main

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"localmcp/internal/fault"
	"localmcp/internal/privdir"
	"localmcp/mooncite/internal/engine"
	"localmcp/mooncite/internal/evidence"
	"localmcp/mooncite/internal/install"
	"localmcp/mooncite/internal/source"
)

func (p *program) installCommand() *cobra.Command {
	return p.lifecycle("install", "Install this program and register it with Pi, OMP, Codex and Claude Code",
		"Install copies this program below $XDG_DATA_HOME (~/.local/share/mooncite), links it as\n"+
			"~/.local/bin/mooncite, and registers it with every client of the four that is there, by the\n"+
			"client's own command. An older version is replaced; what is in order is left alone. Nothing that\n"+
			"mooncite did not make is replaced: another server, package or command of the name is refused.",
		func(ctx context.Context, i *install.Installer, places source.Places) (install.Result, error) {
			for _, dir := range []string{i.Places.Root, i.Places.Launcher} {
				if o, inside := places.Inside(dir); inside {
					return install.Result{}, fault.Wrap(evidence.CodeInstall, &privdir.At{Path: dir}, "mooncite would be installed inside the histories of %s, which are never written to", o).
						WithHint("set XDG_DATA_HOME to a directory outside every root, or take a registered one out with `mooncite source remove`; `mooncite source list` shows them")
				}
			}
			if err := p.prepare(places); err != nil { // without it the program is of no use
				return install.Result{}, err
			}
			r, err := i.Install(ctx)
			if dir := filepath.Dir(i.Places.Launcher); err == nil && !slices.Contains(filepath.SplitList(p.env["PATH"]), dir) {
				p.streams.Notef("%s is not on your PATH: add it, to call mooncite by its name.", dir)
			}
			return r, err
		})
}

func (p *program) disableCommand() *cobra.Command {
	return p.lifecycle("disable", "Take mooncite out of its clients and keep it installed",
		"Disable removes the registrations that install made, by the clients' own commands. `mooncite install`\n"+
			"makes them again. Entries of other servers are not touched.",
		func(ctx context.Context, i *install.Installer, _ source.Places) (install.Result, error) {
			return i.Disable(ctx)
		})
}

func (p *program) uninstallCommand() *cobra.Command {
	return p.lifecycle("uninstall", "Take mooncite out of its clients and remove the installed program",
		"Uninstall removes the registrations, the link in ~/.local/bin and the installed program. The index,\n"+
			"learned memory and the registered sources stay; `mooncite purge`, called before, removes the state.\n"+
			"Histories are never touched.",
		func(ctx context.Context, i *install.Installer, _ source.Places) (install.Result, error) {
			return i.Uninstall(ctx)
		})
}

// lifecycle is a command that changes the installation and keeps what the clients say.
func (p *program) lifecycle(use, short, long string, do func(context.Context, *install.Installer, source.Places) (install.Result, error)) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			places, err := source.PlacesOf(p.env)
			if err != nil {
				return err
			}
			i, err := p.installer()
			if err != nil {
				return err
			}
			r, err := do(c.Context(), i, places)
			if err != nil {
				return err
			}
			if err := p.answer(asJSON, r); err != nil { // it is done, whatever comes
				return err
			}
			if use == "install" || len(r.Registrations) > 0 && engine.Present(places) {
				if err := engine.SaveRegistrations(places, registrations(r.Registrations), time.Now()); err != nil {
					p.streams.Notef("What the clients say could not be kept for the status of servers: %s.", fault.From(err).Error())
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}
