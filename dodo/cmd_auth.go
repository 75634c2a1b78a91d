package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"localmcp/dodo/internal/contract"
	"localmcp/dodo/internal/door/oauth"
	"localmcp/dodo/internal/door/owner"
	"localmcp/dodo/internal/ground/state"
	"localmcp/internal/fault"
)

// overHTTP is the transport of servers that clients log in to.
const overHTTP = "http"

func (p *program) authCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "auth",
		Short: "Let clients log in over HTTP, see who has, and end it",
		Long: "Auth is about clients that reach `dodo start` over HTTP: ChatGPT, Claude, or a client on this machine. One\n" +
			"that logs in waits until you say yes here. A login is for the whole installation, as far as its scopes\n" +
			"go; in managed mode `dodo access` says in which workspaces.",
	}
	c.AddCommand(
		p.authPendingCommand(),
		p.authDecisionCommand("approve", "Let a client log in", cmdAuthApprove, "Approve lets one login through. Look first that the phrase is the one that your browser shows: a login that\n"+
			"somebody else began shows another."),
		p.authDecisionCommand("deny", "Refuse a login", cmdAuthDeny, "Deny refuses one login. The client may ask again."),
		p.authListCommand(),
		p.authRevokeCommand(),
		p.authClientsCommand(),
		p.authAddClientCommand(),
		p.authRemoveClientCommand(),
		p.authRotateKeyCommand(),
	)
	return c
}

// consentOut is a login that waits, or what was decided on it.
type consentOut struct {
	ID           string              `json:"id"`
	Phrase       string              `json:"phrase"`
	ClientID     string              `json:"clientId"`
	ClientName   string              `json:"clientName"`
	Redirect     string              `json:"redirectUri"`
	RedirectHost string              `json:"redirectHost"`
	LoopbackOnly bool                `json:"loopbackOnly"`
	Scopes       []string            `json:"scopes"`
	Resource     string              `json:"resource"`
	AccessMode   contract.AccessMode `json:"accessMode"`
	Created      time.Time           `json:"createdAt"`
	Expires      time.Time           `json:"expiresAt"`
	Status       oauth.ConsentStatus `json:"status"`
}

func shownConsent(c oauth.Consent) consentOut {
	return consentOut{
		ID: c.ID, Phrase: c.Phrase, ClientID: c.ClientID, ClientName: c.ClientName, Redirect: c.Redirect, RedirectHost: c.RedirectHost,
		LoopbackOnly: c.LoopbackOnly, Scopes: c.Scopes, Resource: c.Resource, AccessMode: c.AccessMode, Created: c.Created, Expires: c.Expires, Status: c.Status,
	}
}

// Text is a decision in words.
func (o consentOut) Text() string {
	switch o.Status {
	case oauth.ConsentApproved:
		return fmt.Sprintf("%s may log in, until %s, in the browser that began it.\n", line(o.ClientName), o.Expires.Local().Format(time.TimeOnly))
	case oauth.ConsentDenied:
		return fmt.Sprintf("The login of %s is refused.\n", line(o.ClientName))
	}
	return fmt.Sprintf("The login of %s is %s.\n", line(o.ClientName), o.Status)
}

// consentsOut is what auth pending prints.
type consentsOut struct {
	Pending []consentOut `json:"pending"`
}

// Text is the list in words.
func (o consentsOut) Text() string {
	if len(o.Pending) == 0 {
		return "No client waits to log in.\n"
	}
	var b strings.Builder
	for _, c := range o.Pending {
		fmt.Fprintf(&b, "%s  %s, until %s\n", c.ID, line(c.Phrase), c.Expires.Local().Format(time.TimeOnly))
		fmt.Fprintf(&b, "    client:   %s (%s); the name is what it calls itself\n", line(c.ClientName), line(c.ClientID))
		fmt.Fprintf(&b, "    goes to:  %s\n", line(c.Redirect))
		if c.LoopbackOnly {
			b.WriteString("              on this machine: any program here can say that it is this client\n")
		}
		fmt.Fprintf(&b, "    may:      %s\n", strings.Join(inWords(c.Scopes), "; "))
		if c.AccessMode == contract.AccessPersonal {
			b.WriteString("    where:    in every project of yours, without asking you again\n")
		} else {
			b.WriteString("    where:    in workspaces that you grant it with `dodo access`\n")
		}
	}
	b.WriteString("Compare the phrase with your browser's. Then `dodo auth approve ID` or `dodo auth deny ID`.\n")
	return b.String()
}

// inWords says what scopes allow.
func inWords(scopes []string) (list []string) {
	words := map[string]string{
		string(contract.ScopeRead):  "read files",
		string(contract.ScopeWrite): "change files",
		string(contract.ScopeExec):  "run commands",
		"offline_access":            "stay logged in",
	}
	for _, s := range scopes {
		if w := words[s]; w != "" {
			list = append(list, w)
		}
	}
	if len(list) == 0 {
		list = []string{"nothing"}
	}
	return list
}

// The commands of the owner's socket about logins.
const (
	cmdAuthPending = "auth.pending"
	cmdAuthApprove = "auth.approve"
	cmdAuthDeny    = "auth.deny"
)

// loginServers are the running servers that clients log in to.
func (p *program) loginServers(ctx context.Context) (live []owner.Live, err error) {
	all, err := p.running(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.Transport == overHTTP {
			live = append(live, l)
		}
	}
	if len(live) == 0 {
		return nil, fault.New(notRunning, "no server runs that clients log in to").WithHint("start one with `dodo start`")
	}
	return live, nil
}

func (p *program) authPendingCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "pending", Short: "Show the clients that wait to log in", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			live, err := p.loginServers(c.Context())
			if err != nil {
				return err
			}
			out := consentsOut{Pending: []consentOut{}}
			var failed error
			for _, l := range live {
				var list []consentOut
				switch err := l.Call(c.Context(), cmdAuthPending, nil, &list); {
				case errors.Is(err, owner.ErrEnded):
				case err != nil:
					p.streams.Notef("dodo: the server %d does not say what waits: %v", l.PID, err)
					failed = err
				default:
					out.Pending = append(out.Pending, list...)
				}
			}
			if failed != nil && len(out.Pending) == 0 {
				return failed
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

func (p *program) authDecisionCommand(use, short, cmd, long string) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: use + " ID", Short: short, Long: long, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			live, err := p.loginServers(c.Context())
			if err != nil {
				return err
			}
			var failed error
			for _, l := range live {
				var out consentOut
				switch err := l.Call(c.Context(), cmd, approvalArgs{ID: args[0]}, &out); {
				case err == nil:
					return p.output(asJSON, out)
				case errors.Is(err, contract.ApprovalExpired), errors.Is(err, contract.Conflict):
					return err
				case !errors.Is(err, contract.NotFound):
					failed = err
				}
			}
			if failed != nil {
				return failed
			}
			return fault.New(contract.NotFound, "no login of that id waits").WithHint("`dodo auth pending` lists those that do; one that ended is begun anew in the client")
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}

// loginOut is a grant: one client's login.
type loginOut struct {
	ID       string     `json:"grantId"`
	Client   string     `json:"clientId"`
	Name     string     `json:"clientName,omitempty"`
	Scopes   []string   `json:"scopes"`
	Resource string     `json:"resource"`
	Created  time.Time  `json:"createdAt"`
	Expires  time.Time  `json:"expiresAt"`
	Revoked  *time.Time `json:"revokedAt"`
	Reason   string     `json:"reason,omitempty"`
	Live     bool       `json:"live"`
}

func shownLogin(g state.Grant, names map[string]string) loginOut {
	o := loginOut{ID: g.ID, Client: g.Client, Name: names[g.Client], Scopes: g.Scopes.Words(), Resource: g.Resource, Created: g.Created, Expires: g.Expires, Reason: g.Reason}
	if !g.Revoked.IsZero() {
		o.Revoked = &g.Revoked
	}
	o.Live = o.Revoked == nil && time.Now().Before(g.Expires)
	return o
}

// Text is the login in words.
func (o loginOut) Text() string {
	how := "until " + o.Expires.Local().Format(time.DateOnly)
	switch {
	case o.Revoked != nil:
		how = "ended " + o.Revoked.Local().Format(time.DateTime)
		if o.Reason != "" {
			how += " (" + line(o.Reason) + ")"
		}
	case !o.Live:
		how = "ended " + o.Expires.Local().Format(time.DateTime)
	}
	name := o.Name
	if name == "" {
		name = o.Client
	}
	return fmt.Sprintf("%s  %s, since %s, %s\n    may: %s\n", o.ID, line(name), o.Created.Local().Format(time.DateTime), how, strings.Join(inWords(o.Scopes), "; "))
}

// loginsOut is what auth list prints.
type loginsOut struct {
	Grants []loginOut `json:"grants"`
}

// Text is the list in words.
func (o loginsOut) Text() string {
	if len(o.Grants) == 0 {
		return "No client is logged in.\n"
	}
	var b strings.Builder
	for _, g := range o.Grants {
		b.WriteString(g.Text())
	}
	return b.String()
}

func (p *program) authListCommand() *cobra.Command {
	var asJSON, all bool
	c := &cobra.Command{
		Use: "list", Short: "List the clients that are logged in", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			names, err := in.clientNames(c.Context())
			if err != nil {
				return err
			}
			list, err := in.store.Grants(c.Context())
			if err != nil {
				return err
			}
			out := loginsOut{Grants: []loginOut{}}
			for _, g := range list {
				if o := shownLogin(g, names); o.Live || all {
					out.Grants = append(out.Grants, o)
				}
			}
			return p.output(asJSON, out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	c.Flags().BoolVar(&all, "all", false, "those that ended, too")
	return c
}

func (in *installation) clientNames(ctx context.Context) (map[string]string, error) {
	clients, err := in.store.OAuthClients(ctx)
	names := map[string]string{}
	for _, c := range clients {
		names[c.ID] = c.Name
	}
	return names, err
}

func (p *program) authRevokeCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "revoke GRANT", Short: "End a login",
		Long: "Revoke ends one login: its next call is refused, on every server of this installation. What runs goes on;\n" +
			"`dodo jobs cancel` ends commands.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			in, err := p.existing(c.Context())
			if err != nil {
				return err
			}
			defer in.close(nil)
			g, err := in.store.RevokeGrant(c.Context(), args[0])
			if err != nil {
				return err
			}
			names, err := in.clientNames(c.Context())
			if err != nil {
				return err
			}
			return p.output(asJSON, shownLogin(g, names))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return c
}
