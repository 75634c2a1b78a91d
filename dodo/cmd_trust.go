package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/policy"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// trustOut is what trust prints.
type trustOut struct {
	Root        string              `json:"root"`
	WorkspaceID string              `json:"workspaceId"`
	Trust       contract.Trust      `json:"trust"`
	Effective   contract.Trust      `json:"effectiveTrust"`
	AccessMode  contract.AccessMode `json:"accessMode"`
}

var trustMeaning = map[contract.Trust]string{
	contract.TrustInspect: "clients read; you are asked before files change and commands run",
	contract.TrustEdit:    "clients read and change files without asking you; you are asked before commands run",
	contract.TrustTrusted: "clients do all that dodo can without asking you: change files, run commands, commit",
}

// Text says it in words.
func (o trustOut) Text() string {
	s := fmt.Sprintf("%s: %s (%s)\n", line(o.Root), o.Trust, trustMeaning[o.Trust])
	if o.Effective != o.Trust {
		s += fmt.Sprintf("This has no effect while access is %s: %s holds. `dodo access-mode managed` makes saved trust count.\n", o.AccessMode, o.Effective)
	}
	return s
}

func (p *program) trustCommand() *cobra.Command {
	var asJSON, yes bool
	var root, mode string
	c := &cobra.Command{
		Use:   "trust",
		Short: "Show or set how far clients may act in a workspace without asking",
		Long: "Trust shows, or with --mode sets, what clients may do in one workspace without asking you: inspect, edit\n" +
			"or trusted. It holds at the next call of every running server. Approvals that were given before a\n" +
			"change no longer count. A directory that is put in the place of this one starts with inspect.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, ok := contract.ParseTrust(mode)
			switch {
			case mode != "" && !ok:
				return fault.New(cli.Usage, "--mode must be inspect, edit or trusted")
			case t == contract.TrustTrusted && !yes:
				if err := p.confirm(c.Context(), "Let clients do all that dodo can on this machine, without asking?", "--yes"); err != nil {
					return err
				}
			}
			out, err := p.trust(c.Context(), root, t, mode != "")
			if err != nil {
				return err
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().StringVar(&mode, "mode", "", "set it: inspect, edit or trusted")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask before trusted")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) trust(ctx context.Context, flag string, t contract.Trust, set bool) (o trustOut, err error) {
	root, err := p.rootOf(flag)
	if err != nil {
		return o, err
	}
	open := p.existing // what only shows makes nothing
	if set {
		open = p.install
	}
	in, err := open(ctx)
	if err != nil {
		return o, err
	}
	defer in.close(nil)
	w, err := in.workspaceAt(ctx, root, set)
	if err != nil {
		return o, err
	}
	if set {
		if _, err := in.store.SetTrust(ctx, w.ID, t); err != nil {
			return o, err
		}
		w.Trust = t
	}
	mode := in.config.AccessMode
	return trustOut{Root: w.Root, WorkspaceID: w.ID, Trust: w.Trust, Effective: policy.Trust(w.Trust, mode, false), AccessMode: mode}, nil
}
