package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/config"
	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/cli"
	"localmcp/internal/fault"
)

// accessModeOut is what access-mode prints.
type accessModeOut struct {
	AccessMode contract.AccessMode `json:"accessMode"`
}

// Text says it in words.
func (o accessModeOut) Text() string {
	if o.AccessMode == contract.AccessPersonal {
		return "personal: every client you let in may use every project of yours, and is trusted in it.\n"
	}
	return "managed: a client may use a workspace as far as you granted it there, and saved trust holds.\n"
}

func (p *program) accessModeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "access-mode [personal|managed]",
		Short: "Show or set how authority is given to clients",
		Long: "Access-mode shows or sets whether every client that you let in may use all your projects (personal), or\n" +
			"only what you granted it workspace by workspace (managed). Then `dodo trust` says what clients over\n" +
			"stdio may do, and `dodo access` what others may. It holds at the next call of every running server. Calls\n" +
			"that are running go on.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			out := accessModeOut{}
			if len(args) == 0 {
				in, err := p.settings()
				if err != nil {
					return err
				}
				out.AccessMode = in.AccessMode
				return p.output(asJSON, out)
			}
			mode, ok := contract.ParseAccessMode(args[0])
			if !ok {
				return fault.New(cli.Usage, "the access mode must be personal or managed")
			}
			if err := p.setAccessMode(c.Context(), mode); err != nil {
				return err
			}
			out.AccessMode = mode
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// settings reads the configuration and makes nothing.
func (p *program) settings() (config.Config, error) {
	dir, err := config.Dir(p.env)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(dir)
}

// setAccessMode changes the mode in the file and where running servers look. A change that
// takes away holds before the file is written.
func (p *program) setAccessMode(ctx context.Context, mode contract.AccessMode) error {
	in, err := p.install(ctx)
	if err != nil {
		return err
	}
	defer in.close(nil)
	if _, err := config.Update(ctx, in.dir, func(c *config.Config) error {
		c.AccessMode = mode
		if mode == contract.AccessManaged {
			return in.store.SetAccessMode(ctx, mode)
		}
		return nil
	}); err != nil {
		return err
	}
	return mirrorAccess(ctx, in.dir, in.store)
}

func (p *program) accessCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "access",
		Short: "List, set and remove what clients may do in a workspace",
		Long: "Access is about managed mode: which clients may use a workspace, and how far. Clients on this machine\n" +
			"that start `dodo stdio` act as you: they are not listed, and only `dodo trust` says what they may do. So\n" +
			"nothing here has an effect on them.",
	}
	c.AddCommand(p.accessListCommand(), p.accessSetCommand(), p.accessRemoveCommand())
	return c
}

// accessOut is what the commands of access print.
type accessOut struct {
	Root        string              `json:"root"`
	WorkspaceID string              `json:"workspaceId"`
	AccessMode  contract.AccessMode `json:"accessMode"`
	Clients     []grantOut          `json:"clients"`
}

type grantOut struct {
	Client string   `json:"clientId"`
	Scopes []string `json:"scopes"`
}

// Text is the list in words.
func (o accessOut) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", line(o.Root))
	for _, g := range o.Clients {
		fmt.Fprintf(&b, "    %s: %s\n", line(g.Client), orDash(strings.Join(g.Scopes, " ")))
	}
	if len(o.Clients) == 0 {
		b.WriteString("    no client was granted anything here\n")
	}
	b.WriteString("Clients that start `dodo stdio` are not listed: `dodo trust` says what they may do.\n")
	if o.AccessMode == contract.AccessPersonal {
		b.WriteString("This has no effect while access is personal.\n")
	}
	return b.String()
}

func (p *program) accessListCommand() *cobra.Command {
	return p.accessChange("list", "List what clients were granted in a workspace", 0, nil)
}

func (p *program) accessSetCommand() *cobra.Command {
	var scopes []string
	c := p.accessChange("set CLIENT", "Set what a client may do in a workspace", 1, func(ctx context.Context, in *installation, id string, args []string) error {
		words := make([]string, len(scopes))
		for i, s := range scopes {
			words[i] = "dodo:" + strings.TrimPrefix(s, "dodo:")
		}
		set, ok := contract.ParseScopes(words)
		if !ok || len(set) == 0 {
			return fault.New(cli.Usage, "--scopes must name some of read, write, exec").WithHint("to take everything away: dodo access remove")
		}
		if args[0] == contract.LocalGrant || args[0] == contract.LocalClient {
			return fault.New(cli.Usage, "clients that start `dodo stdio` act as you, and are granted nothing here").
				WithHint("`dodo access-mode managed` and `dodo trust --mode inspect` make them ask")
		}
		return in.store.GrantClient(ctx, id, args[0], set)
	})
	c.Long = "Set says what a client may do in a workspace when access is managed. It is not about clients that start\n" +
		"`dodo stdio`: they act as you, and only `dodo trust` says what they may do."
	c.Flags().StringSliceVar(&scopes, "scopes", nil, "some of `read,write,exec`; they are independent of each other")
	_ = c.MarkFlagRequired("scopes") // fails only for a flag that is not there
	return c
}

func (p *program) accessRemoveCommand() *cobra.Command {
	return p.accessChange("remove CLIENT", "Remove a client from a workspace", 1, func(ctx context.Context, in *installation, id string, args []string) error {
		was, err := in.store.RevokeClient(ctx, id, args[0])
		if err == nil && !was {
			err = fault.New(contract.NotFound, "the client was granted nothing in that workspace").WithHint("`dodo access list` shows who was")
		}
		return err
	})
}

// accessChange is a command that changes the grants of a workspace and prints them; do is nil
// for one that only prints.
func (p *program) accessChange(use, short string, args int, do func(context.Context, *installation, string, []string) error) *cobra.Command {
	var asJSON bool
	var root string
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			at, err := p.rootOf(root)
			if err != nil {
				return err
			}
			open := p.existing
			if do != nil {
				open = p.install
			}
			in, err := open(ctx)
			if err != nil {
				return err
			}
			defer in.close(nil)
			w, err := in.workspaceAt(ctx, at, do != nil)
			if err != nil {
				return err
			}
			if do != nil {
				if err := do(ctx, in, w.ID, args); err != nil {
					return err
				}
			}
			var list []state.ClientGrant
			if !w.Created.IsZero() { // of a directory that was replaced nothing is left
				if list, err = in.store.Clients(ctx, w.ID); err != nil {
					return err
				}
			}
			out := accessOut{Root: w.Root, WorkspaceID: w.ID, AccessMode: in.config.AccessMode}
			for _, g := range list {
				out.Clients = append(out.Clients, grantOut{g.Client, g.Scopes.Words()})
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().StringVar(&root, "root", "", "the workspace's directory (the current one)")
	return c
}
