package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/oauth"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// clientOut is a registered client.
type clientOut struct {
	ID         string           `json:"clientId"`
	Name       string           `json:"clientName"`
	Kind       state.ClientKind `json:"kind"`
	Redirects  []string         `json:"redirectUris"`
	AuthMethod string           `json:"tokenEndpointAuthMethod"`
	Secret     string           `json:"clientSecret,omitempty"` // once, when it is registered
	Created    time.Time        `json:"createdAt"`
	Approved   *time.Time       `json:"approvedAt"`
}

func shownClient(c state.OAuthClient) clientOut {
	o := clientOut{ID: c.ID, Name: c.Name, Kind: c.Kind, Redirects: c.Redirects, AuthMethod: c.AuthMethod, Created: c.Created}
	if !c.Approved.IsZero() {
		o.Approved = &c.Approved
	}
	return o
}

// Text is the client in words.
func (o clientOut) Text() string {
	var b strings.Builder
	how := map[state.ClientKind]string{
		state.ClientStatic:   "registered by you",
		state.ClientDynamic:  "registered itself",
		state.ClientMetadata: "described by its own page",
	}[o.Kind]
	fmt.Fprintf(&b, "%s  %s, %s %s\n", line(o.ID), line(o.Name), how, o.Created.Local().Format(time.DateTime))
	for _, r := range o.Redirects {
		fmt.Fprintf(&b, "    %s\n", line(r))
	}
	if o.Secret != "" {
		fmt.Fprintf(&b, "    secret: %s\n    It is shown once. Give it to the client, and to nobody else.\n", o.Secret)
	}
	return b.String()
}

// clientsOut is what auth clients prints.
type clientsOut struct {
	Clients []clientOut `json:"clients"`
}

// Text is the list in words.
func (o clientsOut) Text() string {
	if len(o.Clients) == 0 {
		return "No client is registered.\n"
	}
	var b strings.Builder
	for _, c := range o.Clients {
		b.WriteString(c.Text())
	}
	return b.String()
}

func (p *program) authClientsCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "clients", Short: "List the clients that are registered",
		Long: "Clients lists what clients could log in. A client that registered itself can do nothing until you approve\n" +
			"its login, and is forgotten after ten minutes without.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			list, err := in.store.OAuthClients(c.Context())
			if err != nil {
				return err
			}
			out := clientsOut{Clients: []clientOut{}}
			for _, each := range list {
				out.Clients = append(out.Clients, shownClient(each))
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) authAddClientCommand() *cobra.Command {
	var asJSON bool
	var o oauth.AddClientOptions
	c := &cobra.Command{
		Use: "add-client --redirect-uri ADDRESS", Short: "Register a client by hand",
		Long: "Add-client registers a client that does not register itself, and prints its id and its secret, for the\n" +
			"client's settings. An address is exactly where the client lets browsers come back to: https, or http on\n" +
			"this machine (there the port does not matter). It needs no running server.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.install(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			added, err := oauth.AddClient(c.Context(), in.store, o)
			if err != nil {
				return err
			}
			out := shownClient(added.Client)
			out.Secret = added.Secret
			return p.output(asJSON, out)
		},
	}
	c.Flags().StringArrayVar(&o.Redirects, "redirect-uri", nil, "`address` the client comes back to; give it once for each")
	c.Flags().StringVar(&o.Name, "name", "", "what people call it")
	c.Flags().BoolVar(&o.Public, "public", false, "it cannot keep a secret, such as a program on somebody's machine")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	_ = c.MarkFlagRequired("redirect-uri") // fails only for a flag that is not there
	return c
}

func (p *program) authRemoveClientCommand() *cobra.Command {
	var asJSON, yes bool
	c := &cobra.Command{
		Use: "remove-client CLIENT", Short: "Remove a client, its logins and what it was granted",
		Long: "Remove-client ends every login of a client, takes it out of every workspace, and removes its registration.\n" +
			"Commands that run go on. The history stays.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			client, err := in.store.OAuthClient(c.Context(), args[0])
			if err != nil {
				return err
			}
			if !yes {
				if err := p.confirm(c.Context(), fmt.Sprintf("Remove %s (%s) and end its logins?", line(client.Name), line(client.ID)), "--yes"); err != nil {
					return err
				}
			}
			if err := in.store.DeleteOAuthClient(c.Context(), client.ID); err != nil {
				return err
			}
			return p.output(asJSON, removedClientOut{client.ID})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

type removedClientOut struct {
	Removed string `json:"removed"`
}

// Text says it in words.
func (o removedClientOut) Text() string {
	return line(o.Removed) + " is removed, and logged out everywhere.\n"
}

func (p *program) authRotateKeyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "rotate-key", Short: "Sign tokens with a new key from now on",
		Long: "Rotate-key makes a new key for signing tokens, also under a running server. Who is logged in stays so: the\n" +
			"key before is published until the last token it signed has ended.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.install(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			if err := oauth.RotateKey(c.Context(), in.dir); err != nil {
				return err
			}
			if err := in.store.Audit(c.Context(), state.Event{Principal: state.PrincipalOwner, Tool: "owner.auth.rotate-key", Result: state.ResultOK}); err != nil {
				return fault.Wrap(contract.InternalError, err, "the key was made, and could not be recorded")
			}
			return p.streams.Text("Tokens are signed with a new key from now on.\n")
		},
	}
	return c
}
